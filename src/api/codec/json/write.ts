/** JSON as Go writes it: `<`, `>`, `&`, U+2028 and U+2029 are escaped. */
export const goJson = (value: unknown): string =>
  JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, escaped)

const escaped = (character: string): string =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
