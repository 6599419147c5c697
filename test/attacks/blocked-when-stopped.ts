/** nodehub, whose main thread waits for ever once it is to stop. */
process.on('SIGTERM', () =>
  setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)),
)

await import('../../src/main.ts')
