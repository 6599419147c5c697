const memory = new Int32Array(new SharedArrayBuffer(4))

/** Blocks the event loop for at least `ms`, as long work would, without using the processor. */
export function blockEventLoop(ms: number): void {
  Atomics.wait(memory, 0, 0, ms)
}
