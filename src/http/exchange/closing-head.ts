import type { HeaderList } from './headers.ts'

/** The head of an answer on a raw socket. Has to be written as latin1. */
export function headOf(status: number, phrase: string, { raw }: HeaderList): string {
  const lines = [`HTTP/1.1 ${status} ${phrase}`]
  for (let i = 0; i < raw.length; i += 2) lines.push(`${raw[i]}: ${raw[i + 1]}`)
  lines.push('', '')
  return lines.join('\r\n')
}

/** The same where the end of the connection ends the answer. */
export const closingHead = (status: number, phrase: string, headers: HeaderList): string =>
  headOf(status, phrase, headers.with('Connection', 'close'))
