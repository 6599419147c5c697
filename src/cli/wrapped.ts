/**
 * The help of a flag in lines, indented below the flag. A list without blanks breaks after its
 * commas.
 */
export function wrapped(text: string): string {
  const lines = ['']
  for (const piece of text.split(/(?<=[ ,])/)) {
    const line = lines.at(-1) ?? ''
    if (line !== '' && line.length + piece.trimEnd().length > 86) lines.push(piece)
    else lines[lines.length - 1] = `${line}${piece}`
  }
  return lines.map((line) => `        ${line.trimEnd()}\n`).join('')
}
