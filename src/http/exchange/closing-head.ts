import type { HeaderList } from './headers.ts'

/**
 * The head of an answer on a raw socket, where the end of the connection ends the answer. Has to be
 * written as latin1.
 */
export function closingHead(status: number, phrase: string, headers: HeaderList): string {
  const lines = [`HTTP/1.1 ${status} ${phrase}`]
  for (let i = 0; i < headers.raw.length; i += 2) {
    lines.push(`${headers.raw[i]}: ${headers.raw[i + 1]}`)
  }
  lines.push('Connection: close', '', '')
  return lines.join('\r\n')
}
