/**
 * A text in lines, as the help of a flag is indented below the flag. A list without blanks breaks
 * after its commas.
 */
export function wrapped(text: string, indentation = '        '): string {
  const lines = ['']
  for (const piece of text.split(/(?<=[ ,])/)) {
    const line = lines.at(-1) ?? ''
    if (line !== '' && line.length + piece.trimEnd().length > 86) lines.push(piece)
    else lines[lines.length - 1] = `${line}${piece}`
  }
  return lines.map((line) => `${indentation}${line.trimEnd()}\n`).join('')
}
