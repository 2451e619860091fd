"""torchvision's families: one small member each, on small images."""
import functools
from unittest import mock

import torch
import torchvision
from torchvision.models import detection, segmentation, video

from entries import Entry, stir

CLASSES = 10


def image(side):
    return lambda batch=1: {"image": torch.rand(batch, 3, side, side) * 2 - 1}


def clip(frames, side):
    return lambda batch=1: {"clip": torch.rand(batch, 3, frames, side, side) * 2 - 1}


def classifier(name, side=64, **options):
    def build():
        return getattr(torchvision.models, name)(weights=None, num_classes=CLASSES, **options)
    return Entry(name, "classification", build, image(side), {"batch": (2, 3)}, {"image": {0: "batch"}})


def small_vit():
    return torchvision.models.VisionTransformer(image_size=64, patch_size=16, num_layers=4, num_heads=4, hidden_dim=128,
                                                mlp_dim=256, num_classes=CLASSES)


def small_maxvit():
    return torchvision.models.MaxVit(input_size=(64, 64), stem_channels=32, partition_size=2,
                                     block_channels=[32, 64], block_layers=[1, 2], head_dim=16,
                                     stochastic_depth_prob=0.0, num_classes=CLASSES)


def segmenter(name, side=64):
    def build():
        return getattr(segmentation, name)(weights=None, weights_backbone=None, num_classes=5)
    return Entry(name, "segmentation", build, image(side), {"batch": (2, 3)}, {"image": {0: "batch"}})


def moving(name, frames=8, side=56, **options):
    def build():
        return getattr(video, name)(weights=None, num_classes=CLASSES, **options)
    return Entry(name, "video", build, clip(frames, side), {"batch": (2, 3)}, {"clip": {0: "batch"}})


def small_mvit():
    """Queries shrink once, and the channels double."""
    def block(heads, before, after, stride):
        return video.mvit.MSBlockConfig(num_heads=heads, input_channels=before, output_channels=after,
                                        kernel_q=[3, 3, 3], kernel_kv=[3, 3, 3], stride_q=[1, stride, stride],
                                        stride_kv=[1, 2, 2])
    return video.MViT(spatial_size=(64, 64), temporal_size=4, num_classes=CLASSES, residual_pool=True,
                      residual_with_cls_embed=False, rel_pos_embed=True, proj_after_attn=True,
                      block_setting=[block(1, 32, 32, 1), block(2, 32, 64, 2), block(2, 64, 64, 1)])


def flow_inputs(batch=1):
    return {key: torch.rand(batch, 3, 128, 128) * 2 - 1 for key in ("first", "second")}


def flow():
    def call(model, first, second):
        return model(first, second, num_flow_updates=3)[-1]
    return Entry("raft_small", "optical flow", lambda: torchvision.models.optical_flow.raft_small(weights=None),
                 flow_inputs, {"batch": (2, 3)}, {"first": {0: "batch"}, "second": {0: "batch"}}, call)


# How far apart the outputs of a detector's last layers shall lie, by a part of their names.
SPREAD = {"cls": 2.0, "classification_head.module_list": 0.5, "bbox": 0.5, "regression_head.module_list": 0.2,
          "mask_fcn_logits": 2.0, "kps_score": 2.0}


def spread(model, image, statistics):
    """Fresh weights give all boxes nearly the same score, or one that is saturated: their order would hang on the last
    bit. The last layers are scaled for an image, and the normalisations get its statistics if they shall."""
    def scale(layer, inputs, output, wanted):
        channels = output.transpose(0, 1).flatten(1)
        if channels.shape[1] > 1:
            factor = wanted / channels.std(1).mean()
            layer.bias.copy_((layer.bias - channels.mean(1)) * factor)
        else:
            factor = wanted / output.std()
        layer.weight.mul_(factor)
        layer.seen.remove()
        return layer(*inputs)

    def normalize(layer, inputs):
        channels = inputs[0].transpose(0, 1).flatten(1)
        if channels.shape[1] > 16:  # fewer would blow noise up
            layer.running_mean.copy_(channels.mean(1))
            layer.running_var.copy_(channels.var(1))
        layer.seen.remove()

    for name, layer in model.named_modules():
        wanted = next((value for part, value in SPREAD.items() if part in name), None)
        if statistics and isinstance(layer, torch.nn.BatchNorm2d):
            layer.seen = layer.register_forward_pre_hook(normalize)
        elif wanted and getattr(layer, "bias", None) is not None and not isinstance(layer, torch.nn.BatchNorm2d):
            layer.seen = layer.register_forward_hook(functools.partial(scale, wanted=wanted))
    with torch.no_grad():
        model.eval()([image])
    return model


def suppressing_unasked():
    """torchvision first asks whether there is any box, which depends on values: the newer exporter cannot follow."""
    def suppress(boxes, scores, classes, threshold):
        apart = boxes + (classes.to(boxes) * (boxes.max() + 1))[:, None]
        return torchvision.ops.nms(apart, scores, threshold)
    return mock.patch.object(torchvision.ops.boxes, "_batched_nms_coordinate_trick", suppress)


def detector(name, side=96, statistics=False, **options):
    """Detectors take a list of images, scale them, and give as many boxes as they find."""
    def build():
        model = getattr(detection, name)(weights=None, weights_backbone=None, num_classes=CLASSES, **options)
        stir(model)
        return spread(model, torch.rand(3, side, side), statistics)

    def call(model, image):
        return model([image])
    return Entry(name, "detection", build, lambda: {"image": torch.rand(3, side, side)}, call=call,
                 around_dynamo=suppressing_unasked, note="torchvision's question whether there is any box is left out")


SMALL = {"min_size": 96, "max_size": 128}
TWO_STAGES = SMALL | {"rpn_pre_nms_top_n_test": 100, "rpn_post_nms_top_n_test": 50, "rpn_score_thresh": 0.0,
                      "box_score_thresh": 0.001, "box_detections_per_img": 20}
ONE_STAGE = {"topk_candidates": 50, "detections_per_img": 20}

ENTRIES = [
    classifier("alexnet", 224),
    classifier("vgg11_bn", 224),
    classifier("resnet18"),
    classifier("resnet50"),
    classifier("resnext50_32x4d"),
    classifier("wide_resnet50_2", 32),
    classifier("densenet121"),
    classifier("inception_v3", 96, init_weights=False, aux_logits=True),
    classifier("googlenet", 64, init_weights=False, aux_logits=True),
    classifier("squeezenet1_1"),
    classifier("shufflenet_v2_x0_5"),
    classifier("mobilenet_v2"),
    classifier("mobilenet_v3_small"),
    classifier("mnasnet0_5"),
    classifier("efficientnet_b0"),
    classifier("efficientnet_v2_s"),
    classifier("regnet_x_400mf"),
    classifier("regnet_y_400mf"),
    classifier("convnext_tiny"),
    Entry("vit (4 layers)", "classification", small_vit, image(64), {"batch": (2, 3)}, {"image": {0: "batch"}},
          interpreter=True),
    classifier("swin_t"),
    classifier("swin_v2_t"),
    Entry("maxvit (2 stages)", "classification", small_maxvit, image(64), {"batch": (2, 3)}, {"image": {0: "batch"}},
          interpreter=True),
    segmenter("fcn_resnet50"),
    segmenter("deeplabv3_mobilenet_v3_large"),
    segmenter("deeplabv3_resnet50"),
    segmenter("lraspp_mobilenet_v3_large"),
    moving("r3d_18"),
    moving("r2plus1d_18"),
    moving("mc3_18"),
    moving("s3d", frames=16, side=224),
    Entry("mvit v2 (3 blocks)", "video", small_mvit, clip(4, 64), {"batch": (2, 3)}, {"clip": {0: "batch"}}),
    moving("swin3d_t", frames=4, side=56),
    flow(),
    detector("fasterrcnn_mobilenet_v3_large_320_fpn", **TWO_STAGES),
    detector("fasterrcnn_resnet50_fpn", **TWO_STAGES),
    detector("fasterrcnn_resnet50_fpn_v2", **TWO_STAGES),
    detector("maskrcnn_resnet50_fpn", **TWO_STAGES),
    detector("keypointrcnn_resnet50_fpn", **TWO_STAGES),
    detector("retinanet_resnet50_fpn", **SMALL, **ONE_STAGE),
    detector("fcos_resnet50_fpn", **SMALL, **ONE_STAGE),
    detector("ssd300_vgg16", **ONE_STAGE),
    detector("ssdlite320_mobilenet_v3_large", 320, True, **ONE_STAGE),
]
