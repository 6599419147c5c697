declare const brand: unique symbol

/**
 * The program behind a request, as it names itself: it selects filters and what is recorded, never
 * a credential.
 */
export type Component = string & { readonly [brand]: 'Component' }

/** The hub, where it asks for something itself. */
export const ownComponent = 'nodehub'

/** Characters of a program's name: what programs were shown is remembered by it. */
const longestName = 128

/**
 * The part of a User-Agent before the first slash, lower-cased: `kubelet/v1.35.0 (linux/amd64)` is
 * `kubelet`; none is ''. Programs go by the name of their file, and several kubectls lie side by
 * side as `kubectl.1.33` or `kubectl-1.33`: each is `kubectl`. What is longer than any name is
 * none.
 */
export function componentOf(userAgent: string | undefined): Component {
  const end = userAgent?.search(/[/\s]/) ?? -1
  const name = (end < 0 ? (userAgent ?? '') : (userAgent ?? '').slice(0, end)).toLowerCase()
  if (name.length > longestName) return '' as Component
  return (/^kubectl[.-]v?[0-9.]+$/.test(name) ? 'kubectl' : name) as Component
}
