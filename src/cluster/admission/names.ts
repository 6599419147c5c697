/**
 * A label's or an annotation's name: at most 63 characters, after a DNS name and a slash where it
 * has a prefix.
 */
const namePart = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/

/**
 * Whether a text can be the name of a namespace (apimachinery pkg/util/validation, IsDNS1123Label).
 */
export const isDnsLabel = (name: string): boolean =>
  /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name)

const dnsSubdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

/**
 * All annotations of one object together, names included (apimachinery
 * pkg/api/validation/objectmeta.go).
 */
const annotationBytes = 256 * 1024

/**
 * The problem with `name` as the name of a label or a taint (apimachinery pkg/util/validation,
 * IsQualifiedName).
 */
export function wrongName(name: string): string | undefined {
  const slash = name.indexOf('/')
  const prefix = slash < 0 ? undefined : name.slice(0, slash)
  if (prefix !== undefined && (prefix.length > 253 || !dnsSubdomain.test(prefix)))
    return `${JSON.stringify(name)}: what stands before the slash is no DNS name`
  if (!namePart.test(name.slice(slash + 1)))
    return (
      `${JSON.stringify(name)}: a name is 1 to 63 letters, digits, '-', '_' and '.', ` +
      'and begins and ends with a letter or a digit'
    )
  return undefined
}

/** The problem with `value` as the value of a label or a taint (IsValidLabelValue). */
export const wrongValue = (value: string): string | undefined =>
  value === '' || namePart.test(value)
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
