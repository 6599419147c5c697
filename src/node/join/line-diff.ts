import { diff } from 'node:util'

/**
 * The lines of two texts: `-` is only in the first, `+` only in the second. Empty where they are
 * equal.
 */
export const lineDiff = (before: string, after: string): readonly string[] =>
  before === after
    ? []
    : diff(linesOf(before), linesOf(after)).map(([operation, line]) => `${signs[operation]}${line}`)

const signs = { '1': '-', '0': ' ', '-1': '+' } as const

const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\n$/, '').split('\n'))
