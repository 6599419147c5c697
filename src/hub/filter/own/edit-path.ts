import type { Path } from '../../../api/codec/cursor.ts'

const step = /\.?([A-Za-z_$][\w$-]*)|\[(\d{1,4})\]|\[(\*)\]|\[(?:'([^'\]]+)'|"([^"\]]+)")\]/y

/**
 * Parses a path in an object, such as `spec.ports[*].protocol` or
 * `metadata.labels['example.com/x']`; `undefined` where the text is no path.
 */
export function parsePath(text: string): Path | undefined {
  const path: (string | number)[] = []
  step.lastIndex = 0
  while (step.lastIndex < text.length) {
    const from = step.lastIndex
    const [whole, name, index, all, ...quoted] = step.exec(text) ?? []
    // Only the first step has no dot before its name.
    if (whole === undefined || (name !== undefined && whole.startsWith('.') !== from > 0))
      return undefined
    path.push(index === undefined ? (name ?? all ?? quoted[0] ?? quoted[1] ?? '') : Number(index))
  }
  return typeof path[0] === 'string' && path[0] !== '*' ? path : undefined
}
