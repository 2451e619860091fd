"""Training: a Trainer makes weights of a model better on arrays, and writes the model with them."""
from __future__ import annotations

import os
import shutil
import sys
from typing import Any, Callable, Iterable, Mapping, NamedTuple, Optional, Sequence, Union

import numpy as np

from . import _arrays, _core
from ._compile import bytes_of, checked_threads, default_threads
from ._errors import usage
from ._function import State, TensorSpec, specs_of
from ._model import shape_lists

Path = Union[str, "os.PathLike[str]"]
Samples = Union[np.ndarray, Sequence[Any], Mapping[str, Any]]


class Report(NamedTuple):
    """What a step or, with `of_epoch`, an epoch came to; numbers of epochs and steps begin with 1."""
    of_epoch: bool
    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float
    rate: float
    samples_per_second: float
    validation_loss: Optional[float] = None
    accuracy: Optional[float] = None
    is_best: bool = False

    def __str__(self) -> str:
        return _core.epoch_line(tuple(self)) if self.of_epoch else _core.progress_line(tuple(self), 80)


class History(NamedTuple):
    """What a fit came to. `epochs` and `steps` count from where the training began, `reports` has the epochs of this
    fit."""
    reports: tuple[Report, ...]
    epochs: int
    steps: int
    seconds: float
    samples_per_second: float
    stopped_early: bool


class Evaluation(NamedTuple):
    """The mean loss, and for losses with labels the share of those that the model gives the most."""
    loss: float
    accuracy: Optional[float]


class Trainer:
    """A model that learns.

        trainer = aglow.Trainer("model.onnx", "softmax-cross-entropy", "adam", train="head.*")
        trainer.fit(images, labels, epochs=5, validation=(more_images, more_labels))
        trainer.export("trained.onnx")

    model        path of an ONNX file, of a Caffe2 net or of a graph (.graph), the bytes of a file, or a ModelProto
    loss         softmax-cross-entropy (targets are labels), sigmoid-cross-entropy, squared-error, absolute-error, huber
                 or kl-divergence; of scores where the model ends with a Softmax or Sigmoid
    optimizer    sgd, momentum, nesterov, adam, adamw, rmsprop or adagrad
    train        which initializers are trained: names, patterns with * and ?, "all"; with ! before it: not these
    initialize   first values instead of the model's, by names and patterns: {"head.*": "he:gain=0.5"}, where an
                 initializer is zero, constant, uniform, normal, xavier, he, orthogonal or the path of a .npy file
    batch        samples of a step. A model with a batch of its own runs several times for each step
    accumulate   runs that a step is cut into, to save memory
    sample_axes  inputs, and the output, that have their samples along another axis than the first: {"x": 1}. Arrays
                 have samples in rows all the same
    output       the output that is compared with the targets; by default the first
    settings, loss_settings   numbers that the optimizer and the loss take: {"decay": 0.01}
    clip_norm    holds the norm of all gradients together below this; clip_value: each element
    batch_norm_momentum   lets batch norms use the statistics of their batch, and moves the running ones, which keep
                 this share of themselves; without it they stay as they are
    inputs       inputs that are the same for all samples, by name
    recompute    bytes that the intermediate results of a step may take: what does not fit is computed again, to the same
                 bits
    precision    "float"; or "bf16": products round what they read, all else, the variables above all, stays f32
    seed         what random numbers follow from: the same seed and data give the same bits

    The other arguments are those of aglow.compile. `state` has all that changes, by name.
    """

    def __init__(self, model: Any, loss: str = "softmax-cross-entropy", optimizer: str = "adam", *,
                 train: Union[str, Iterable[str]] = "all", initialize: Optional[Mapping[str, Path]] = None,
                 batch: int = 32, accumulate: int = 1, sample_axes: Optional[Mapping[str, int]] = None,
                 output: Optional[str] = None, settings: Optional[Mapping[str, float]] = None,
                 loss_settings: Optional[Mapping[str, float]] = None, clip_norm: float = 0, clip_value: float = 0,
                 batch_norm_momentum: Optional[float] = None, recompute: Optional[int] = None,
                 precision: str = "float",
                 inputs: Optional[Mapping[str, Any]] = None, seed: int = 0, function: Optional[str] = None,
                 init: Optional[Path] = None, shapes: Optional[Mapping[str, Sequence[int]]] = None,
                 dims: Optional[Mapping[str, int]] = None, backend: Optional[str] = None, threads: Optional[int] = None,
                 cache: Union[Path, bool, None] = None, memory_limit: Optional[int] = None,
                 disable: Iterable[str] = (), strict: bool = False):
        named = isinstance(model, (str, os.PathLike))
        if init is not None and not named:
            raise usage("E101", "an init net belongs to a model that is a path")
        if recompute is not None and recompute < 1:
            raise usage("E101", f"recompute is {recompute}; expected a number of bytes")
        if precision not in ("float", "bf16"):
            raise usage("E101", f"precision is '{precision}'; expected float or bf16")
        self._core = _core.open_trainer(
            path=os.fspath(model) if named else "", data=None if named else bytes_of(model),
            init=os.fspath(init) if init is not None else "", loss=loss, output=output or "",
            loss_settings={name: float(value) for name, value in (loss_settings or {}).items()}, optimizer=optimizer,
            settings={name: float(value) for name, value in (settings or {}).items()}, clip_value=float(clip_value),
            clip_norm=float(clip_norm), batch_norm_momentum=batch_norm_momentum,
            variables=[train] if isinstance(train, str) else list(train),
            initializers=[(name, os.fspath(how)) for name, how in (initialize or {}).items()],
            function=function or "", batch=batch, accumulate=accumulate, sample_axes=dict(sample_axes or {}),
            fixed={name: _arrays.to_pair(value, "any") for name, value in (inputs or {}).items()},
            shapes=shape_lists(shapes), dims=dict(dims or {}), backend=backend or os.environ.get("AGLOW_BACKEND", ""),
            threads=checked_threads(threads, "threads") if threads else default_threads(),
            cache="off" if cache is False else "" if cache is None or cache is True else os.fspath(cache),
            memory_limit=memory_limit or 0, disable=list(disable), strict=strict, seed=seed,
            recompute=recompute or 0, precision=precision)
        self.inputs: tuple[TensorSpec, ...] = specs_of(self._core.inputs)
        self._state = State(self._core)

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of what is trained."""
        return tuple(self._core.variables)

    @property
    def state(self) -> State:
        """All that changes, by name: the variables, and what the optimizer remembers."""
        return self._state

    @property
    def steps(self) -> int:
        """Steps since the training began."""
        return self._core.step

    def fit(self, inputs: Samples, target: Any, *, epochs: int = 1, rate: float = 1e-3,
            schedule: Union[str, Callable[[int], float]] = "constant", shuffle: bool = True, drop_last: bool = False,
            validation: Optional[tuple[Samples, Any]] = None, patience: int = 0, min_delta: float = 0,
            restore_best: bool = False, checkpoint: Optional[Path] = None, checkpoint_every: int = 0,
            resume: bool = False, callbacks: Iterable[Callable[[Report], Any]] = (),
            progress: Optional[bool] = None) -> History:
        """Trains on samples, which are rows of arrays: one array, or a dict with one for each input.

        rate, schedule  how far steps go: "constant", "linear", "cosine", "exponential=0.9", "step=10:0.5", each with
                        ",warmup=100" if wanted; or a function of the step's number, which gives the rate itself
        drop_last       leaves out the last batch of an epoch where it is not full
        validation      samples and targets to measure after each epoch
        patience        stops after so many epochs whose validation loss is not better by min_delta; 0: never
        restore_best    ends with the weights of the best validation loss
        checkpoint      file in which the training is kept after each epoch, and every `checkpoint_every` steps
        resume          goes on from the checkpoint, if there is one: to the same bits as without an interruption
        callbacks       called with the Report of each step and of each epoch; one that gives True ends the training
        progress        whether to show how far it has come on stderr; by default where that is a screen

        Raises aglow.Error where a loss is not finite, with the operator that made the first such number.
        """
        rates = schedule if callable(schedule) else None
        shown = sys.stderr.isatty() if progress is None else progress
        told = tuple(callbacks)

        def report(made: tuple[Any, ...]) -> bool:
            if shown:
                _show(made)
            return any([bool(callback(Report(*made))) for callback in told])

        held = None if validation is None else (self._samples(validation[0]), self._target(validation[1]))
        found = self._core.fit(
            self._samples(inputs), self._target(target), epochs=epochs, rate=float(rate),
            schedule=schedule if isinstance(schedule, str) else "constant", rate_of=rates and (lambda step: float(rates(step))),
            shuffle=shuffle, drop_last=drop_last, validation=held, patience=patience, min_delta=float(min_delta),
            restore_best=restore_best, checkpoint=os.fspath(checkpoint) if checkpoint is not None else "",
            checkpoint_every=checkpoint_every, resume=resume, report=report if shown or told else None)
        return History(tuple(Report(*row) for row in found["history"]), found["epochs"], found["steps"],
                       found["seconds"], found["samples_per_second"], found["stopped_early"])

    def evaluate(self, inputs: Samples, target: Any) -> Evaluation:
        """The loss over samples, without a step."""
        return Evaluation(*self._core.evaluate(self._samples(inputs), self._target(target)))

    def predict(self, inputs: Samples) -> np.ndarray[Any, Any]:
        """The output that is trained, for each sample."""
        return _arrays.from_pair(*self._core.predict(self._samples(inputs)))

    def save(self, path: Path) -> None:
        """Writes a checkpoint: whole, or not at all."""
        self._core.save(os.fspath(path))

    def load(self, path: Path) -> None:
        """Takes up a checkpoint of the same model and settings."""
        self._core.restore(os.fspath(path))

    def export(self, path: Path) -> None:
        """Writes the model with its new weights as an ONNX file, which is otherwise what was read."""
        self._core.export(os.fspath(path))

    def export_module(self, path: Path) -> None:
        """Writes the functions that predict, evaluate and train as a graph (.graph), which `aglow compile` makes a
        bundle of: training without any runtime. It begins with the weights as they are now, and with an optimizer that
        remembers nothing."""
        self._core.export_module(os.fspath(path))

    def _samples(self, inputs: Samples) -> dict[str, Any]:
        if not isinstance(inputs, Mapping):
            if len(self.inputs) != 1:
                raise usage("E102", f"the model has {len(self.inputs)} inputs: expected a dict of arrays",
                             "its inputs are " + ", ".join(spec.name for spec in self.inputs))
            inputs = {self.inputs[0].name: inputs}
        kinds = {spec.name: spec._kind for spec in self.inputs}
        try:
            return {name: _arrays.to_pair(value, kinds.get(name, "any")) for name, value in inputs.items()}
        except (TypeError, ValueError) as fault:
            raise usage("E102", str(fault)) from None

    def _target(self, target: Any) -> tuple[str, Any]:
        try:
            return _arrays.to_pair(np.asarray(target), "any")
        except (TypeError, ValueError) as fault:
            raise usage("E102", f"the target: {fault}") from None


def _show(made: tuple[Any, ...]) -> None:
    of_epoch = made[0]
    line = _core.epoch_line(made) if of_epoch else _core.progress_line(made, shutil.get_terminal_size().columns)
    print(f"\r{line}\x1b[K", end="\n" if of_epoch else "", file=sys.stderr, flush=True)
