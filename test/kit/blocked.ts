const memory = new Int32Array(new SharedArrayBuffer(4))

/**
 * Blocks the event loop for at least so many milliseconds, as long work would, at no cost of the
 * processor.
 */
export function blocked(ms: number): void {
  Atomics.wait(memory, 0, 0, ms)
}
