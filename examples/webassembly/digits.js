// The network in a page or in node: nothing is imported, and nothing is asked of a server.
async function loadDigits(bytes) {
  const { exports } = (await WebAssembly.instantiate(bytes, {})).instance;
  if (exports.check() !== 0) throw new Error("the weights are not those of the code");
  return (pixels) => {
    new Float32Array(exports.memory.buffer, exports.image(), 64).set(pixels);
    if (exports.run() !== 0) throw new Error("the run failed");
    const answer = Array.from(new Float32Array(exports.memory.buffer, exports.probabilities(), 10));
    const digit = answer.indexOf(Math.max(...answer));
    return { digit, probability: answer[digit] };
  };
}

// In node: node digits.js digits.wasm IMAGE.npy...
if (typeof process !== "undefined" && process.argv.length > 2) {
  const { readFileSync } = require("node:fs");
  loadDigits(readFileSync(process.argv[2])).then((recognise) => {
    for (const path of process.argv.slice(3)) {
      const file = readFileSync(path);
      const { digit, probability } = recognise(new Float32Array(file.buffer.slice(file.byteOffset + file.length - 256, file.byteOffset + file.length)));
      console.log(`${digit} ${(100 * probability).toFixed(1)}`);
    }
  });
}
