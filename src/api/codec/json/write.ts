/** JSON as Go writes it: `<`, `>`, `&`, U+2028 and U+2029 are escaped. `indent`: for people. */
export const goJson = (value: unknown, indent?: number): string =>
  JSON.stringify(value, undefined, indent).replace(/[<>&\u2028\u2029]/g, escaped)

const escaped = (character: string): string =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
