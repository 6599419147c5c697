import { fromProtobuf } from '../../src/sandbox/protobuf.ts'
import { eventsIn } from '../kit/client-watch.ts'
import { fieldOf, type Heard } from './door.ts'
import type { Sender } from './message.ts'

/** What two answers to one request have to share. */
export interface Likeness {
  readonly interim: readonly number[]
  readonly line: string
  readonly fields: readonly string[]
  readonly body: string
  readonly trailers: readonly string[]
}

/** How an answer is to be looked at; `undefined` is no answer at all. */
export type Look = (heard: Heard | undefined, sender: Sender) => Likeness | undefined

/**
 * Of one connection: the hub has connections of its own with both sides, and frames on each what
 * passes.
 */
const ofConnection = new Set(['connection', 'keep-alive', 'transfer-encoding', 'content-length'])

/** Of one answer. That both have it is compared, what it says is not. */
const ofMoment = new Set(['date', 'audit-id'])

/** Every byte counts. */
export const exactly: Look = (heard) =>
  heard && {
    interim: heard.interim,
    line: heard.line,
    fields: fieldsBut(heard, ofConnection),
    body: heard.body,
    trailers: heard.trailers,
  }

/**
 * Without what sets two objects apart that were made in the same way, or two looks at one object at
 * different times.
 */
export const asTwins: Look = (heard, sender) => {
  const plain = exactly(heard, sender)
  if (heard === undefined || plain === undefined) return undefined
  const mask = (text: string): string => masked(text, sender)
  return { ...plain, fields: plain.fields.map(mask), body: mask(textOf(heard)) }
}

/**
 * Watches as twins, without bookmarks between events: when an API server sends one is a matter of
 * its clock. The bookmark that ends initial events is compared, and so are all other events, in
 * their order, and how the watch ends. A cacher's watch has no fields of the API server's handling
 * of one request.
 */
export const asWatched: Look = (heard, sender) => {
  const twins = asTwins(heard && { ...heard, body: withoutBookmarks(heard) }, sender)
  if (heard?.status !== 200 || !twins) return twins
  return { ...twins, fields: twins.fields.filter((field) => !ofHandling.test(field)) }
}

const ofHandling = /^(?:date|audit-id|x-kubernetes-pf-[^:]*)(?::|$)/

function withoutBookmarks(heard: Heard): string {
  const { body, status } = heard
  const type = fieldOf(heard, 'content-type') ?? ''
  if (status !== 200 || fieldOf(heard, 'content-encoding') !== undefined) return body
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

/** What of an answer belongs to its connection. */
export const connectionOf = (heard: Heard): readonly string[] => {
  const rest = new Set(fieldsBut(heard, ofConnection))
  return fieldsBut(heard, new Set()).filter((field) => !rest.has(field))
}

/** In no order, for it says nothing between fields of different names. */
function fieldsBut({ fields }: Heard, left: ReadonlySet<string>): string[] {
  const kept: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const name = (fields[i] ?? '').toLowerCase()
    if (left.has(name)) continue
    kept.push(ofMoment.has(name) ? name : `${name}: ${fields[i + 1]}`)
  }
  return kept.toSorted()
}

/** A body in protobuf says its times and numbers in bytes that no mask finds. */
function textOf(heard: Heard): string {
  const type = fieldOf(heard, 'content-type') ?? ''
  const isObject = type.startsWith('application/vnd.kubernetes.protobuf') && !type.includes('watch')
  return isObject ? JSON.stringify(fromProtobuf(Buffer.from(heard.body, 'latin1'))) : heard.body
}

/** What was masked last: most answers to one request are the same text at every door. */
const known = new Map<string, string>()
const mostKnown = 16

function masked(text: string, { namespace }: Sender): string {
  const shared = text.replaceAll(namespace, 'OWN')
  const before = known.get(shared)
  if (before !== undefined) return before
  const result = withoutMoment(shared)
  const [oldest] = known.keys()
  if (oldest !== undefined && known.size === mostKnown) known.delete(oldest)
  known.set(shared, result)
  return result
}

const withoutMoment = (text: string): string =>
  text
    .replace(/((?:"?manager"?: ?|using )"?)(?:kubelet|operator)\b/g, '$1AGENT')
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'UID')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, 'TIME')
    .replace(/("?resourceVersion"?: ?"?)\d+/g, '$1VERSION')
    .replace(/(current: |old resource version: \d+ \()\d+/g, '$1VERSION')
    .replace(/"<?\d+[smh]>?"/g, '"AGE"')
    .replace(/(X509SHA256=)[0-9a-f]{64}/g, '$1CERTIFICATE')
    .replace(/eyJ[\w-]+\.[\w-]+\.[\w-]+/g, 'TOKEN')
    .replace(/\b(generated-|kube-api-access-)[a-z0-9]{5}\b/g, '$1XXXXX')
