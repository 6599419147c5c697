import type { Terminal } from '../../src/cli/command.ts'

/** How a command ended, and what it has printed. */
export interface Said {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** Calls a command in this process, with a terminal that keeps what is printed. */
export async function said(act: (terminal: Terminal) => Promise<number>): Promise<Said> {
  const printed = { out: '', err: '' }
  const code = await act({
    out: (text) => void (printed.out += text),
    err: (text) => void (printed.err += text),
  })
  return { code, ...printed }
}
