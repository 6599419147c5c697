/** Whether a text can be the name of an object (apimachinery, IsDNS1123Subdomain). */
export const isSubdomain = (text: string): boolean =>
  text.length <= 253 &&
  /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(text)

/** Whether a text can be the name of a namespace (IsDNS1123Label). */
export const isDnsLabel = (text: string): boolean =>
  /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text)

/** Whether a text can be the key of a label, an annotation or a taint (IsQualifiedName). */
export function isLabelKey(text: string): boolean {
  const [name = '', prefix, ...more] = text.split('/').toReversed()
  const isPrefix = prefix === undefined || isSubdomain(prefix)
  return more.length === 0 && isPrefix && name !== '' && isLabelValue(name)
}

/** Whether a text can be the value of a label or a taint (IsValidLabelValue). */
export const isLabelValue = (text: string): boolean =>
  /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/.test(text)
