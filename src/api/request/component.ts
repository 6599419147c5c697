declare const brand: unique symbol

/**
 * The program behind a request by its User-Agent. It selects filters and recording, and is never a
 * credential.
 */
export type Component = string & { readonly [brand]: 'Component' }

/** The component of the hub's own requests. */
export const ownComponent = 'nodehub'

/** In characters: last observed versions are kept by component. */
const longestName = 128

/**
 * The part of a User-Agent before the first slash, in lower case: `kubelet/v1.35.0 (linux/amd64)`
 * is `kubelet`; a missing one is ''. Programs use their file name, and several kubectls are
 * installed as `kubectl.1.33` or `kubectl-1.33`: each is `kubectl`. A name that is too long is ''.
 */
export function componentOf(userAgent = ''): Component {
  const known = named.get(userAgent)
  if (known !== undefined) return known
  const component = nameIn(userAgent)
  if (named.size >= mostNamed) named.clear()
  if (userAgent.length <= longestAgent) named.set(userAgent, component)
  return component
}

/** Clients write the same few headers over and over. */
const named = new Map<string, Component>()
const mostNamed = 256
const longestAgent = 512

function nameIn(userAgent: string): Component {
  const end = userAgent.search(/[/\s]/)
  const name = (end < 0 ? userAgent : userAgent.slice(0, end)).toLowerCase()
  if (name.length > longestName) return '' as Component
  return (/^kubectl[.-]v?[0-9.]+$/.test(name) ? 'kubectl' : name) as Component
}
