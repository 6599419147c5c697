// Fragments of CEL as the API server evaluates it (matchConditions, policies). They become part of
// manifests that are applied to the cluster.

/** A text as a literal. JSON's escapes are CEL's too. */
export const quoted = (text: string): string => JSON.stringify(text)

/** A label of `self`; '' without it. */
export const labelOf = (self: string, name: string): string =>
  `${self}.metadata.?labels[?${quoted(name)}].orValue("")`

/** An annotation of `self`; '' without it. */
export const annotationOf = (self: string, name: string): string =>
  `${self}.metadata.?annotations[?${quoted(name)}].orValue("")`

export const all = (...conditions: readonly string[]): string =>
  conditions.map((each) => `(${each})`).join(' && ')

export const any = (...conditions: readonly string[]): string =>
  conditions.map((each) => `(${each})`).join(' || ')

export const isOneOf = (value: string, texts: Iterable<string>): string =>
  `${value} in [${[...texts].map(quoted).join(', ')}]`

/** The user that sends the request. */
export const user = 'request.userInfo.username'

export const isCreate = 'request.operation == "CREATE"'
