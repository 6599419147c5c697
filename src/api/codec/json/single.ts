import { apiVersionOf, parseApiVersion, type GVK } from '../../kube/gvk.ts'
import type { Projection } from '../../kube/media-type.ts'
import type { ApiObject } from '../../kube/object.ts'
import { MalformedBody } from '../malformed-body.ts'
import { isSpace, Members, skipSpace, textOf, valueEnd } from './members.ts'
import { Scanner } from './scanner.ts'
import { goJson } from './write.ts'

const kindStart = Buffer.from('{"kind":"')
const versionStart = Buffer.from(',"apiVersion":"')

/**
 * Removes kind and apiVersion from a single object if they come first, as in the API server's own
 * types: lists hold these objects without them. Custom resources have them in alphabetical order,
 * in lists too, and the other projections keep theirs.
 */
export function separateKind(
  bytes: Buffer,
  projection: Projection,
  led = leadingKind(bytes),
): { gvk: GVK; bytes: Buffer } {
  if (led) return { gvk: led.gvk, bytes: projection === 'object' ? without(bytes, led.end) : bytes }
  const gvk = gvkIn(bytes)
  if (!gvk) throw new MalformedBody('an object that does not say its kind')
  return { gvk, bytes }
}

/** Kind and apiVersion, if an object begins with them; `end` is after the apiVersion. */
interface LeadingKind {
  readonly gvk: GVK
  readonly end: number
}

/** The same with the bytes, up to the comma or bracket after the apiVersion. */
export interface RepeatedKind extends LeadingKind {
  readonly start: Buffer
}

/** As the object before began, so do most objects of a watch. */
export function repeatedKind(bytes: Buffer, before?: RepeatedKind): RepeatedKind | undefined {
  if (before && startsWith(bytes, 0, before.start)) return before
  const led = leadingKind(bytes)
  return led && { ...led, start: Buffer.from(bytes.subarray(0, led.end + 1)) }
}

function leadingKind(bytes: Buffer): LeadingKind | undefined {
  if (!startsWith(bytes, 0, kindStart)) return undefined
  const kindEnd = valueEnd(bytes, kindStart.length - 1)
  if (!startsWith(bytes, kindEnd, versionStart)) return undefined
  const versionAt = kindEnd + versionStart.length - 1
  const end = valueEnd(bytes, versionAt)
  const kind = textOf(bytes, kindStart.length - 1, kindEnd)
  if (bytes[end] !== 0x2c && bytes[end] !== 0x7d) return undefined
  return { gvk: { ...parseApiVersion(textOf(bytes, versionAt, end)), kind }, end }
}

function startsWith(bytes: Buffer, at: number, expected: Buffer): boolean {
  return (
    at + expected.length <= bytes.length &&
    bytes.compare(expected, 0, expected.length, at, at + expected.length) === 0
  )
}

function without(bytes: Buffer, end: number): Buffer {
  const from = bytes[end] === 0x2c ? end + 1 : end
  // Not out of Node's pool, of which an event log would keep all alive.
  const rest = Buffer.allocUnsafeSlow(bytes.length - from + 1)
  rest[0] = 0x7b
  bytes.copy(rest, 1, from)
  return rest
}

/** The object with kind and apiVersion first, unless it has them. */
export function withKind(gvk: GVK, bytes: Buffer): Buffer[] {
  if (saysItsKind(bytes)) return [bytes]
  const rest = bytes.subarray(skipSpace(bytes, 1))
  return [rest[0] === 0x7d ? saidOf(gvk, '') : saidOf(gvk, ','), rest]
}

/** Objects have the same few kinds. */
const said = new Map<string, Buffer>()
const mostSaid = 256

/** The beginning of an object of this kind, up to `end`. */
function saidOf(gvk: GVK, end: '' | ','): Buffer {
  const apiVersion = apiVersionOf(gvk)
  const key = `${gvk.kind}\0${apiVersion}${end}`
  const known = said.get(key)
  if (known) return known
  const bytes = Buffer.from(`{"kind":${goJson(gvk.kind)},"apiVersion":${goJson(apiVersion)}${end}`)
  if (said.size >= mostSaid) said.clear()
  said.set(key, bytes)
  return bytes
}

const metadataFirst = Buffer.from('{"metadata":')

/**
 * Whether the object names its kind. The API server writes either metadata or the kind first; an
 * object with metadata first and the kind later gets the kind twice.
 */
function saysItsKind(bytes: Buffer): boolean {
  return !startsWith(bytes, 0, metadataFirst) && gvkIn(bytes) !== undefined
}

/** `body` without the white space around it, which is one object if `checkOnlyObject` says so. */
export function trimmed(body: Buffer): Buffer {
  const start = skipSpace(body, 0)
  if (body[start] !== 0x7b) throw new MalformedBody('no object')
  let end = body.length
  while (isSpace(body[end - 1])) end--
  return body.subarray(start, end)
}

/** Throws a `MalformedBody` where `bytes` are not one object and nothing else. */
export function checkOnlyObject(bytes: Buffer): void {
  const end = new Scanner().scan(bytes, 0, bytes.length)
  if (end < 0) throw new MalformedBody('the object ends too early')
  if (end < bytes.length) throw new MalformedBody('something follows the object')
}

interface Identity {
  namespace: string
  name: string
  uid: string
  resourceVersion: string
}

/** The object whose JSON is `bytes`. */
export function apiObject(bytes: Buffer): ApiObject {
  const found = { namespace: '', name: '', uid: '', resourceVersion: '', bytes }
  readObject(bytes, found)
  return found
}

/**
 * The last of duplicated members wins. The scan ends early once all four fields are known, which
 * the API server writes first.
 */
function readObject(bytes: Buffer, found: Identity): void {
  for (const members = new Members(bytes, 0); members.next();) {
    if (!members.is('metadata')) continue
    found.namespace = found.name = found.uid = found.resourceVersion = ''
    if (members.isObject && readMetadata(bytes, members.valueStart, found)) return
  }
}

function readMetadata(bytes: Buffer, at: number, found: Identity): boolean {
  for (const members = new Members(bytes, at); members.next();) {
    if (members.is('name')) found.name = members.string
    else if (members.is('namespace')) found.namespace = members.string
    else if (members.is('uid')) found.uid = members.string
    else if (members.is('resourceVersion')) found.resourceVersion = members.string
    else continue
    if (found.name && found.namespace && found.uid && found.resourceVersion) return true
  }
  return false
}

/** The kind that an object in JSON names; `undefined` if it names none. */
export function gvkIn(bytes: Buffer): GVK | undefined {
  let ownKind = ''
  let ownVersion = ''
  for (const members = new Members(bytes, 0); members.next();) {
    if (members.is('kind')) ownKind = members.string
    else if (members.is('apiVersion')) ownVersion = members.string
  }
  return ownKind && ownVersion ? { ...parseApiVersion(ownVersion), kind: ownKind } : undefined
}
