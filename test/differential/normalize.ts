import { gunzipSync } from 'node:zlib'
import { fromProtobuf } from '../../src/sandbox/protobuf.ts'
import { eventsIn } from '../kit/client-watch.ts'
import { fieldOf, type RawResponse } from './client.ts'
import type { Sender } from './message.ts'

/** The parts of two answers that have to be equal. */
export interface NormalizedResponse {
  readonly interim: readonly number[]
  readonly line: string
  readonly fields: readonly string[]
  readonly body: string
  readonly trailers: readonly string[]
}

/** Removes what may differ between two answers; `undefined` stands for no answer. */
export type Normalizer = (
  response: RawResponse | undefined,
  sender: Sender,
) => NormalizedResponse | undefined

/**
 * Fields of a connection: the hub has its own connections on both sides, and frames and compresses
 * the bytes on each.
 */
const connectionFields = new Set([
  'content-encoding',
  'connection',
  'keep-alive',
  'transfer-encoding',
  'content-length',
])

/** Fields that vary by answer: both answers must have them, with any value. */
const varyingFields = new Set(['date', 'audit-id'])

/** Every byte counts, but for the ages in a Table: an API server writes them by its clock. */
export const exact: Normalizer = (answer) => {
  const response = answer && unpacked(answer)
  return (
    response && {
      interim: response.interim,
      line: response.line,
      fields: fieldsBut(response, connectionFields),
      body: isTable(response) ? withoutAges(response.body) : response.body,
      trailers: response.trailers,
    }
  )
}

const unpacked = (response: RawResponse): RawResponse =>
  fieldOf(response, 'content-encoding') === 'gzip'
    ? { ...response, body: gunzipSync(Buffer.from(response.body, 'latin1')).toString('latin1') }
    : response

const isTable = (response: RawResponse): boolean =>
  response.body.includes('"kind":"Table"') || response.body.includes('kind: Table')

const withoutAges = (text: string): string => text.replace(/"<?\d+[smh]>?"/g, '"AGE"')

/**
 * Masks what differs between two objects that were created alike, or between two reads of one
 * object at different times.
 */
export const withoutInstances: Normalizer = (response, sender) => {
  const plain = exact(response, sender)
  if (response === undefined || plain === undefined) return undefined
  const mask = (text: string): string => masked(text, sender)
  return {
    ...plain,
    fields: plain.fields.map(mask),
    body: withSortedManagers(mask(textOf(unpacked(response)))),
  }
}

/**
 * An API server sorts managed fields by time, in seconds: which of two came first is up to the
 * clock.
 */
function withSortedManagers(text: string): string {
  let sorted = ''
  let read = 0
  for (const { index, 0: head } of text.matchAll(/"managedFields":\[/g)) {
    const start = index + head.length
    const elements = elementsFrom(text, start)
    sorted += text.slice(read, start) + elements.toSorted().join(',')
    read = start + elements.join(',').length
  }
  return sorted + text.slice(read)
}

/** The elements of the JSON array whose first one begins at `start`; none without its end. */
function elementsFrom(text: string, start: number): string[] {
  const elements: string[] = []
  const tokens = /"(?:[^"\\]|\\.)*"|[[\]{},]/g
  tokens.lastIndex = start
  let from = start
  let depth = 0
  for (let token = tokens.exec(text); token; token = tokens.exec(text)) {
    const [mark] = token
    if (depth === 0 && (mark === ',' || mark === ']')) {
      elements.push(text.slice(from, token.index))
      from = tokens.lastIndex
      if (mark === ']') return elements
    }
    if (mark === '[' || mark === '{') depth += 1
    if (mark === ']' || mark === '}') depth -= 1
  }
  return []
}

/**
 * Compares watches without bookmarks between events: the API server sends those by its clock. The
 * bookmark that ends initial events is compared, and so are all other events, in their order, and
 * how the watch ends. A cacher's watch has no fields of the API server's handling of one request.
 */
export const watchEvents: Normalizer = (response, sender) => {
  const twins = withoutInstances(
    response && { ...response, body: withoutBookmarks(response) },
    sender,
  )
  if (response?.status !== 200 || !twins) return twins
  return { ...twins, fields: twins.fields.filter((field) => !handlingFields.test(field)) }
}

const handlingFields = /^(?:date|audit-id|x-kubernetes-pf-[^:]*)(?::|$)/

function withoutBookmarks(response: RawResponse): string {
  const { body, status } = response
  const type = fieldOf(response, 'content-type') ?? ''
  if (status !== 200 || fieldOf(response, 'content-encoding') !== undefined) return body
  const bytes = Buffer.from(body, 'latin1')
  let kept = ''
  let read = 0
  for (const { type: event, frame } of eventsIn(bytes, type.startsWith('application/vnd.'))) {
    read += frame.length
    const isOfClock = event === 'BOOKMARK' && !frame.includes('k8s.io/initial-events-end')
    if (!isOfClock) kept += frame.toString('latin1')
  }
  return kept + bytes.subarray(read).toString('latin1')
}

/** The fields of an answer that belong to its connection. */
export const connectionOf = (response: RawResponse): readonly string[] => {
  const rest = new Set(fieldsBut(response, connectionFields))
  return fieldsBut(response, new Set()).filter((field) => !rest.has(field))
}

/** Sorted: the order of fields with different names has no meaning. */
function fieldsBut({ fields }: RawResponse, left: ReadonlySet<string>): string[] {
  const kept: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const name = (fields[i] ?? '').toLowerCase()
    if (left.has(name)) continue
    kept.push(varyingFields.has(name) ? name : `${name}: ${fields[i + 1]}`)
  }
  return kept.toSorted()
}

/** Decodes a protobuf body, in whose bytes no mask finds times and versions. */
function textOf(response: RawResponse): string {
  const type = fieldOf(response, 'content-type') ?? ''
  const isObject = type.startsWith('application/vnd.kubernetes.protobuf') && !type.includes('watch')
  return isObject
    ? JSON.stringify(fromProtobuf(Buffer.from(response.body, 'latin1')))
    : response.body
}

/** The latest masked texts: most answers to one request are the same text for every client. */
const known = new Map<string, string>()
const mostKnown = 16

function masked(text: string, { namespace }: Sender): string {
  const shared = text.replaceAll(namespace, 'OWN')
  const before = known.get(shared)
  if (before !== undefined) return before
  const result = withVariablesMasked(shared)
  const [oldest] = known.keys()
  if (oldest !== undefined && known.size === mostKnown) known.delete(oldest)
  known.set(shared, result)
  return result
}

const withVariablesMasked = (text: string): string =>
  withoutAges(text)
    .replace(/((?:"?manager"?: ?|using )"?)(?:kubelet|operator)\b/g, '$1AGENT')
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'UID')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, 'TIME')
    .replace(/("?resourceVersion"?: ?"?)\d+/g, '$1VERSION')
    .replace(/(current: |old resource version: \d+ \()\d+/g, '$1VERSION')
    .replace(/(X509SHA256=)[0-9a-f]{64}/g, '$1CERTIFICATE')
    .replace(/eyJ[\w-]+\.[\w-]+\.[\w-]+/g, 'TOKEN')
    .replace(/\b(generated-|kube-api-access-)[a-z0-9]{5}\b/g, '$1XXXXX')
