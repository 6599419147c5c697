import { isLabelKey, isLabelValue } from '../../api/kube/names.ts'

/**
 * All annotations of one object together, names included (apimachinery
 * pkg/api/validation/objectmeta.go).
 */
const annotationBytes = 256 * 1024

/** The problem with `name` as the name of a label or a taint. */
export const wrongName = (name: string): string | undefined =>
  isLabelKey(name)
    ? undefined
    : `${JSON.stringify(name)}: a name is 1 to 63 letters, digits, '-', '_' and '.', ` +
      'begins and ends with a letter or a digit, and may have a DNS name and a slash before it'

/** The problem with `value` as the value of a label or a taint. */
export const wrongValue = (value: string): string | undefined =>
  isLabelValue(value)
    ? undefined
    : `${JSON.stringify(value)}: a value is at most 63 letters, digits, '-', '_' and '.', ` +
      'and begins and ends with a letter or a digit'

/**
 * The problems with the annotations of an object (ValidateAnnotations: names are compared in lower
 * case).
 */
export function wrongAnnotations(annotations: Readonly<Record<string, unknown>>): string[] {
  const wrong = Object.keys(annotations).flatMap((name) => wrongName(name.toLowerCase()) ?? [])
  const bytes = Object.entries(annotations).reduce(
    (sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(String(value)),
    0,
  )
  return bytes > annotationBytes
    ? [...wrong, `annotations are ${annotationBytes} bytes at most`]
    : wrong
}
