import { asBuffer, joined } from '../base/bytes.ts'
import type { HeaderList } from '../exchange/headers.ts'
import type { BodyReply, Exchange, Reply } from '../exchange/exchange.ts'
import type { GVR } from '../kube/gvk.ts'
import { mediaType, type Encoding } from '../kube/media-type.ts'
import { alreadyExists, notFound, serviceUnavailable, StatusError } from '../kube/status.ts'
import type { ResourceRequest } from '../request/request-info.ts'
import type { ObjectStore } from '../store/store.ts'
import { objectKey } from '../store/keys.ts'
import { answerHeaders, localObject, neverCached } from './answers.ts'

/** What a write that is answered here may measure: the API server's own limit on a body. */
const bodyBytes = 3 * 1024 * 1024

/** How writes are met while the cloud is gone: by resource, subresource and verb. Nothing is replayed yet. */
type Answer = (exchange: Exchange, info: ResourceRequest, facts: Facts) => Promise<Reply>

interface Facts {
  readonly store: ObjectStore
  readonly nodeName: string
}

/** The writes of a node that must not fail (protocol: kubelet start-up, leases, status, events); anything else is refused. */
const answers: Record<string, Answer> = {
  // A kubelet that starts registers itself: told that its node exists, it goes on with a get.
  'create nodes': async (exchange, info, { store, nodeName }) => {
    known(exchange, info, store, nodeName)
    throw new StatusError(alreadyExists({ ...info.gvr, name: nodeName }))
  },
  'patch nodes/status': async (exchange, info, { store }) => localObject(exchange, info, store),
  'patch pods/status': async (exchange, info, { store }) => localObject(exchange, info, store),
  'create leases.coordination.k8s.io': heartbeat(201),
  'update leases.coordination.k8s.io': heartbeat(200),
  'create events': echo(201),
  'create events.events.k8s.io': echo(201),
  // Answered so, the recorder sends the whole event instead, which can be accepted.
  'patch events': async (_exchange, info) => unknownEvent(info),
  'patch events.events.k8s.io': async (_exchange, info) => unknownEvent(info),
  // Fatal to a kubelet when refused for long; true only of what the cloud has confirmed before.
  'create csinodes.storage.k8s.io': async (exchange, info, { store, nodeName }) => {
    known(exchange, info, store, nodeName)
    return echo(201)(exchange, info, { store, nodeName })
  },
  'update csinodes.storage.k8s.io': async (exchange, info, facts) => {
    known(exchange, info, facts.store, facts.nodeName)
    return echo(200)(exchange, info, facts)
  },
}

/** Answers a write, or throws the 503 that says that it cannot be done now. */
export async function localWrite(
  exchange: Exchange,
  info: ResourceRequest,
  facts: Facts,
): Promise<Reply> {
  const subresource = info.subresource === undefined ? '' : `/${info.subresource}`
  const answer = answers[`${info.verb} ${resourceOf(info.gvr)}${subresource}`]
  if (answer === undefined || exchange.credential !== 'node') {
    throw new StatusError(
      serviceUnavailable('the cloud cannot be reached, and this cannot be done without it'),
    )
  }
  return answer(exchange, info, facts)
}

const resourceOf = ({ group, resource }: GVR): string =>
  group === '' ? resource : `${resource}.${group}`

/** Throws 503 unless the cloud has shown the object before, in whatever form. */
function known(exchange: Exchange, info: ResourceRequest, store: ObjectStore, name: string): void {
  const named = { ...info, name }
  const shown = exchange.forms.some((form) => {
    const found = store.get(objectKey(exchange, named, form))
    return found !== undefined && found !== 'absent'
  })
  if (!shown) {
    throw new StatusError(
      serviceUnavailable('the cloud cannot be reached, and has not confirmed this before'),
    )
  }
}

function unknownEvent(info: ResourceRequest): never {
  throw new StatusError(notFound({ ...info.gvr, name: info.name ?? '' }))
}

/** What was sent is what is stored, as far as its sender can tell; its resource version stays the one it came with. */
function echo(status: number): Answer {
  return async (exchange) => {
    const encoding = encodingOf(exchange.headers)
    if (encoding === undefined || !exchange.forms.some((form) => form.encoding === encoding)) {
      throw new StatusError(
        serviceUnavailable(
          'the cloud cannot be reached, and this form cannot be answered without it',
        ),
      )
    }
    const reply: BodyReply = {
      kind: 'body',
      from: 'cache',
      status,
      headers: answerHeaders(mediaType(encoding)),
      body: await bodyOf(exchange),
    }
    return reply
  }
}

/** The lease by which a node says that it lives. Any other elects a leader, and nobody is elected alone. */
function heartbeat(status: number): Answer {
  const accept = echo(status)
  return async (exchange, info, facts) => {
    if (info.namespace !== 'kube-node-lease') throw neverCached()
    return accept(exchange, info, facts)
  }
}

function encodingOf(headers: HeaderList): Encoding | undefined {
  const [type] = (headers.get('content-type') ?? 'application/json').split(';')
  if (type === 'application/json') return 'json'
  return type === 'application/vnd.kubernetes.protobuf' ? 'protobuf' : undefined
}

async function bodyOf({ body }: Exchange): Promise<Buffer> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of body ?? []) {
    const chunk = asBuffer(part as Uint8Array)
    bytes += chunk.byteLength
    if (bytes > bodyBytes)
      throw new StatusError(serviceUnavailable('the body is too large to be accepted offline'))
    parts.push(chunk)
  }
  return joined(parts)
}
