import { badRequest, invalid, StatusError, type StatusCause } from '../kube/status.ts'
import { isTrue } from './request-info.ts'

/** The options of a list or watch, without selectors. */
export interface ListOptions {
  readonly resourceVersion: string
  readonly match: string
  readonly limit: number
  readonly continue: string
  readonly allowBookmarks: boolean
  readonly sendInitialEvents: boolean | undefined
  readonly timeoutSeconds: number | undefined
}

/**
 * Parses and validates the options of a list or watch as apimachinery
 * pkg/apis/meta/internalversion/validation does. Throws a StatusError.
 */
export function listOptionsOf(
  query: URLSearchParams,
  watch: boolean,
  watchListServed: boolean,
): ListOptions {
  const options: ListOptions = {
    resourceVersion: query.get('resourceVersion') ?? '',
    match: query.get('resourceVersionMatch') ?? '',
    limit: wholeNumber(query.get('limit')) ?? 0,
    continue: query.get('continue') ?? '',
    allowBookmarks: isTrue(query.get('allowWatchBookmarks')),
    sendInitialEvents: query.has('sendInitialEvents')
      ? isTrue(query.get('sendInitialEvents'))
      : undefined,
    timeoutSeconds: wholeNumber(query.get('timeoutSeconds')),
  }
  const causes = watch ? watchFlaws(options, watchListServed) : listFlaws(options)
  if (causes.length > 0) throw new StatusError(invalidOptions(causes))
  return options
}

/** Those of a watch; `undefined` where an API server with WatchList refuses them. */
export function watchOptionsOf(query: URLSearchParams): ListOptions | undefined {
  try {
    return listOptionsOf(query, true, true)
  } catch (error) {
    if (error instanceof StatusError) return undefined
    throw error
  }
}

/** Throws a StatusError 400 for a text that is no number. */
function wholeNumber(text: string | null): number | undefined {
  if (text === null || text === '') return undefined
  if (/^[+-]?[0-9]{1,15}$/.test(text)) return Number(text)
  throw new StatusError(
    badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`),
  )
}

function listFlaws({ match, resourceVersion, ...options }: ListOptions): StatusCause[] {
  const flaws: StatusCause[] = []
  if (match !== '') {
    if (resourceVersion === '') {
      flaws.push(
        forbiddenMatch('resourceVersionMatch is forbidden unless resourceVersion is provided'),
      )
    }
    if (options.continue !== '') flaws.push(continued)
    if (match !== 'Exact' && match !== 'NotOlderThan') {
      flaws.push(unsupportedMatch(match, '"Exact", "NotOlderThan", ""'))
    }
    if (match === 'Exact' && resourceVersion === '0') {
      flaws.push(
        forbiddenMatch('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'),
      )
    }
  }
  if (options.sendInitialEvents !== undefined) {
    flaws.push(forbiddenField('sendInitialEvents', 'sendInitialEvents is forbidden for list'))
  }
  return flaws
}

function watchFlaws(
  { match, sendInitialEvents, ...options }: ListOptions,
  watchListServed: boolean,
): StatusCause[] {
  const flaws: StatusCause[] = []
  if (sendInitialEvents !== undefined) {
    if (match !== 'NotOlderThan') {
      flaws.push(
        forbiddenMatch('sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'),
      )
    }
    if (!watchListServed) {
      flaws.push(
        forbiddenField(
          'sendInitialEvents',
          'sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled',
        ),
      )
    }
  }
  if (match === '') {
    // With WatchList, a watch from any version is treated as one (`SetListOptionsDefaults`).
    const isAny = options.resourceVersion === '' || options.resourceVersion === '0'
    const isTaken = watchListServed && sendInitialEvents === undefined && isAny
    if (isTaken && options.continue !== '') flaws.push(continued)
    return flaws
  }
  if (sendInitialEvents === undefined) {
    flaws.push(
      forbiddenMatch(
        'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
      ),
    )
  }
  if (match !== 'NotOlderThan') flaws.push(unsupportedMatch(match, '"NotOlderThan"'))
  if (options.continue !== '') flaws.push(continued)
  return flaws
}

const forbiddenField = (field: string, detail: string): StatusCause => ({
  reason: 'FieldValueForbidden',
  message: `Forbidden: ${detail}`,
  field,
})

const forbiddenMatch = (detail: string): StatusCause =>
  forbiddenField('resourceVersionMatch', detail)

const continued = forbiddenMatch('resourceVersionMatch is forbidden when continue is provided')

const unsupportedMatch = (match: string, supported: string): StatusCause => ({
  reason: 'FieldValueNotSupported',
  message: `Unsupported value: "${match}": supported values: ${supported}`,
  field: 'resourceVersionMatch',
})

function invalidOptions(causes: readonly StatusCause[]): ReturnType<typeof invalid> {
  const texts = causes.map(({ field, message }) => `${field}: ${message}`)
  const text = texts.length === 1 ? texts.join('') : `[${texts.join(', ')}]`
  return invalid(`ListOptions.meta.k8s.io "" is invalid: ${text}`, {
    group: 'meta.k8s.io',
    kind: 'ListOptions',
    causes,
  })
}

/**
 * The requested version as a number; zero for "any" and for none. Throws a StatusError for an
 * invalid one: 400 for a list; 500 without a reason for a get and a watch, as API servers do.
 */
export function versionNumber(text: string, verb: 'get' | 'list' | 'watch'): number {
  if (text === '') return 0
  if (/^[0-9]{1,19}$/.test(text)) return Number(text)
  const message = `resourceVersion: Invalid value: ${JSON.stringify(text)}: strconv.ParseUint: parsing ${JSON.stringify(text)}: invalid syntax`
  if (verb === 'list') throw new StatusError(badRequest(`invalid resource version: ${message}`))
  const { reason: _reason, ...status } = badRequest(message)
  throw new StatusError({ ...status, code: 500 })
}

/**
 * Throws a StatusError 400 for a request with both a continue token and a version: the token
 * implies the version.
 */
export function refuseVersionWithContinue({ continue: page, resourceVersion }: ListOptions): void {
  if (page === '' || resourceVersion === '' || resourceVersion === '0') return
  throw new StatusError(
    badRequest('specifying resource version is not allowed when using continue'),
  )
}

/**
 * Whether a list is at exactly the requested version: by its match, or because pages follow one
 * another.
 */
export const isExactList = ({ match, limit }: ListOptions): boolean =>
  match === 'Exact' || (match === '' && limit > 0)

/**
 * The query parameters of requests for resources that the hub reads, or that change nothing in what
 * it would answer: those of ListOptions, GetOptions, CreateOptions, UpdateOptions and PatchOptions,
 * the rows of Tables, and what API servers take for any request.
 */
const understood = new Set([
  'allowWatchBookmarks',
  'continue',
  'fieldSelector',
  'labelSelector',
  'limit',
  'resourceVersion',
  'resourceVersionMatch',
  'sendInitialEvents',
  'timeoutSeconds',
  'watch',
  'includeObject',
  'dryRun',
  'fieldManager',
  'fieldValidation',
  'force',
  'pretty',
  'timeout',
])

/**
 * Whether the hub understands all parameters of a request for a resource. Another one may change
 * what the answer is of, as `shardSelector` does.
 */
export function areUnderstood(query: URLSearchParams): boolean {
  for (const name of query.keys()) if (!understood.has(name)) return false
  return true
}
