/** What `execFile` says of a program that has failed. */
interface FailedProgram {
  readonly code?: number | string | null
  readonly signal?: string | null
  readonly killed?: boolean
}

/** How a program that may take `mostMs` has failed, as the rest of a sentence. */
export function howFailed({ code, signal, killed }: FailedProgram, mostMs: number): string {
  if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return 'prints too much'
  if (typeof code === 'string') return `cannot be run: ${code}`
  if (killed === true) return `took longer than ${mostMs / 1000} s`
  return typeof code === 'number' ? `ended with ${code}` : `was ended by ${signal}`
}
