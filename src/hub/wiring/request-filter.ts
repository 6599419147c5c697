import type { RequestEntry } from './request-entry.ts'

/** The parameters that select requests; each has one value or several, of which one has to fit. */
const fits: Readonly<Record<string, (entry: RequestEntry, value: string) => boolean>> = {
  component: ({ component }, value) => component === value,
  /** The caller's kind of identity, or the name of its account. */
  user: ({ caller, account }, value) => caller === value || account === value,
  verb: ({ verb }, value) => verb === value,
  /** With or without its group. */
  resource: ({ resource }, value) => resource === value || resource.split('.')[0] === value,
  namespace: ({ namespace }, value) => namespace === value,
  name: ({ name }, value) => name === value,
  /** A code, or a class of them as `5xx`. */
  code: ({ code }, value) =>
    value.endsWith('xx') ? Math.floor(code / 100) === Number(value[0]) : code === Number(value),
  source: ({ source }, value) => source === value,
  /** In milliseconds. */
  'slower-than': ({ ms }, value) => ms > Number(value),
}

/**
 * Whether a request is one of those that the query names; `undefined`: it names none. Throws where
 * it has a parameter that selects nothing.
 */
export function requestFilter(
  query: URLSearchParams,
): ((entry: RequestEntry) => boolean) | undefined {
  const wanted = [...new Set(query.keys())].map((name) => {
    const fit = Object.hasOwn(fits, name) ? fits[name] : undefined
    if (!fit) throw new Error(`requests are not selected by ${JSON.stringify(name)}`)
    return { fit, values: query.getAll(name) }
  })
  if (wanted.length === 0) return undefined
  return (entry) => wanted.every(({ fit, values }) => values.some((value) => fit(entry, value)))
}
