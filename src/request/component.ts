declare const brand: unique symbol

/** The program behind a request, as it names itself: it selects filters and what is recorded, never a credential. */
export type Component = string & { readonly [brand]: 'Component' }

/** The part of a User-Agent before the first slash, lower-cased: `kubelet/v1.35.0 (linux/amd64)` is `kubelet`; none is ''. */
export function componentOf(userAgent: string | undefined): Component {
  const end = userAgent?.search(/[/\s]/) ?? -1
  return (end < 0 ? (userAgent ?? '') : (userAgent ?? '').slice(0, end)).toLowerCase() as Component
}
