import { execFile } from 'node:child_process'
import { isObject, type Json, type JsonObject } from '../../api/kube/json.ts'
import { listAt, textAt, valueAt } from '../../api/kube/json-at.ts'
import { namespacedName } from '../../api/kube/object.ts'
import { pathOf, pods } from '../../api/kube/resources.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import { MalformedPath, parseRequestInfo } from '../../api/request/request-info.ts'
import type { ApiServer } from '../../cluster/api/api-server.ts'
import { printable } from '../../cluster/exit-plan/owner.ts'
import type { RequestEntry } from '../../hub/wiring/request-entry.ts'
import { imageMain, imageRuntime } from '../../node/join/static-pod.ts'
import { aligned } from '../aligned.ts'
import { paragraphs } from '../inspect/printed.ts'
import { requests } from '../inspect/requests.ts'

/** A request as the flags of `nodehub inspect requests` name it. */
export type Question = Readonly<Partial<Record<'verb' | 'resource' | 'namespace' | 'name', string>>>

/** Reads `get pods/web`, `list pods`, or a method and path. */
export function questionOf(
  words: readonly string[],
  namespace: string,
): Question | { wrong: string } {
  const [first = '', second = ''] = words
  const path = first.startsWith('/') ? first : second
  if (path.startsWith('/')) return ofPath(first === path ? 'GET' : first.toUpperCase(), path)
  const [resource = '', name, ...more] = second.split('/')
  if (resource === '' || more.length > 0)
    return { wrong: 'REQUEST is VERB RESOURCE[/NAME], or a path that begins with /' }
  return {
    verb: first.toLowerCase(),
    resource,
    ...(namespace !== '' && { namespace }),
    ...(name !== undefined && { name }),
  }
}

function ofPath(method: string, path: string): Question | { wrong: string } {
  try {
    const info = parseRequestInfo(method, path)
    if (!info.isResource) return { wrong: `${JSON.stringify(path)} is about no resource` }
    const { verb, gvr, namespace, name } = info
    return {
      verb,
      resource: qualifiedResource(gvr),
      ...(namespace !== undefined && { namespace }),
      ...(name !== undefined && { name }),
    }
  } catch (cause) {
    if (!(cause instanceof MalformedPath)) throw cause
    return { wrong: `${JSON.stringify(path)} is no path: ${cause.message}` }
  }
}

/** The command for a technician at the node. */
export const atNode = (question: Question): string =>
  `nodehub inspect requests ${flagsOf(question).join(' ')}`

const flagsOf = (question: Question): string[] =>
  Object.entries(question).map(([name, value]) => `--${name}=${value}`)

/** What the hub of a node knows of a request. */
export interface Known {
  /** The last such requests, with the reasons for their answers. */
  readonly requests: readonly JsonObject[]
  /** The recorded collections that it would read from without a link. */
  readonly recorded: readonly JsonObject[]
}

/**
 * What the hub of the node knows of such requests. Its port is on the node's loopback alone, where
 * no proxy of the API server gets: it is queried in its own pod, as `kubectl exec` does, with
 * `flags` that lead kubectl to the same API server. Rejects with a message for people.
 */
export async function known(
  api: ApiServer,
  node: string,
  question: Question,
  flags: readonly string[],
): Promise<Known> {
  const pod = await hubPod(api, node)
  if (!pod) throw new Error(`the hub of ${node}, if there is one, runs in no pod`)
  const port = listAt(pod, 'spec', 'containers')
    .flatMap((container) => listAt(container, 'args'))
    .map(String)
    .filter((arg) => arg.startsWith('--serve-port='))
  const [namespace, name] = [textAt(pod, 'metadata', 'namespace'), textAt(pod, 'metadata', 'name')]
  const inspect = async (...words: readonly string[]): Promise<Json | undefined> => {
    const program = [imageRuntime, imageMain, 'inspect', ...words, '--output=json', ...port]
    const said = await kubectl([
      'exec',
      ...flags,
      `--namespace=${namespace}`,
      name,
      '--',
      ...program,
    ])
    return cleanJson(said)
  }
  const last = await inspect('requests', ...flagsOf(question))
  // A hub whose store cannot be read still knows its requests.
  const cache = await inspect('cache').catch(() => undefined)
  const isMeant = (each: JsonObject): boolean => {
    const [resource, namespace] = [textAt(each, 'resource'), textAt(each, 'namespace')]
    const isIn =
      namespace === '' || question.namespace === undefined || question.namespace === namespace
    return isIn && (resource === question.resource || resource.startsWith(`${question.resource}.`))
  }
  return {
    requests: listAt(last, 'items').filter(isObject),
    recorded: listAt(cache, 'collections', 'items').filter(isObject).filter(isMeant),
  }
}

export const knownText = ({ requests: last, recorded }: Known, { resource }: Question): string =>
  paragraphs(
    last.length === 0
      ? 'The hub has answered no such request lately.\n'
      : requests.table({ items: last as unknown as readonly RequestEntry[] }),
    recorded.length === 0
      ? `It has recorded no list of ${resource}: without a link it could answer none.\n`
      : `Without a link it would answer from these:\n${aligned(
          ['COLLECTION', 'READ BY', 'CONFIRMED', 'OBJECTS'],
          recorded.map((each) => [
            namespacedName({
              namespace: textAt(each, 'namespace'),
              name: textAt(each, 'resource'),
            }),
            textAt(each, 'identity'),
            textAt(each, 'confirmedAt'),
            JSON.stringify(valueAt(each, 'objects') ?? null),
          ]),
        )}`,
  )

/** A hub's texts have what its clients sent. Throws where it is no JSON. */
const cleanJson = (text: string): Json =>
  JSON.parse(text, (_, value: unknown) =>
    typeof value === 'string' ? printable(value.slice(0, longest)) : value,
  ) as Json

async function hubPod(api: ApiServer, node: string): Promise<JsonObject | undefined> {
  const selectors = {
    fieldSelector: `spec.nodeName=${node}`,
    labelSelector: 'app.kubernetes.io/name=nodehub,app.kubernetes.io/component=hub',
  }
  for await (const pod of api.list(pathOf(pods), selectors)) return pod
  return undefined
}

const patienceMs = 60_000
const most = 16 * 1024 * 1024
/** Of one text in a report. */
const longest = 500

/** What kubectl prints; rejects with what it says. */
function kubectl(args: readonly string[]): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const bounds = { timeout: patienceMs, maxBuffer: most }
  execFile('kubectl', args, bounds, (failure, out, err) => {
    if (!failure) resolve(out)
    else if (failure.code === 'ENOENT') reject(new Error('there is no kubectl in PATH'))
    else {
      const said = failure.killed ? `it was ended after ${patienceMs / 1000} s` : err.trim()
      reject(new Error(`kubectl exec: ${printable(said.slice(0, 500))}`))
    }
  })
  return promise
}
