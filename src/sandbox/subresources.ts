import { now } from '../base/clock.ts'
import type { GVK } from '../api/kube/gvk.ts'
import { apiVersionOf } from '../api/kube/gvk.ts'
import type { JsonObject } from '../api/kube/json.ts'
import { listAt, objectAt, optionalTextAt, textAt, valueAt } from '../api/kube/json-at.ts'
import { nodes, pods } from '../api/kube/resources.ts'
import { badRequest, conflict, StatusError } from '../api/kube/status.ts'
import { isTrue } from '../api/request/request-info.ts'
import { sendBody, sendObject, sendStreamHead } from './answer.ts'
import { readObject } from './body.ts'
import type { Api } from './call.ts'
import { negotiate, type ResponseFormat } from './negotiation.ts'
import { timestamp } from './object.ts'
import { hasProtobuf } from './render.ts'
import { nameOf, type ResourceCall } from './resource-call.ts'

/** False for subresources that are a part of their object: those are read and written as it is. */
export async function answerSubresource(api: Api, call: ResourceCall): Promise<boolean> {
  const handler = handlers[`${call.kind.gvr.resource}/${call.info.subresource ?? ''}`]
  if (!handler) return false
  await handler(api, call)
  return true
}

type Handler = (api: Api, call: ResourceCall) => Promise<void> | void

const handlers: Record<string, Handler> = {
  'serviceaccounts/token': requestToken,
  'pods/log': log,
  'pods/exec': onlyUpgraded,
  'pods/attach': onlyUpgraded,
  'pods/portforward': onlyUpgraded,
}

const tokenRequest: GVK = { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' }

const formatFor = ({ seen }: ResourceCall, gvk: GVK): ResponseFormat =>
  negotiate(seen, { protobuf: hasProtobuf(gvk), conversions: false })

const bodyAs = ({ request }: ResourceCall, gvk: GVK): Promise<JsonObject> =>
  readObject(request, { kind: gvk.kind, apiVersion: apiVersionOf(gvk) })

async function requestToken(api: Api, call: ResourceCall): Promise<void> {
  const { kind, info } = call
  const format = formatFor(call, tokenRequest)
  const given = await bodyAs(call, tokenRequest)
  const account = api.registry.get(kind, info.namespace, nameOf(call))
  const audiences = listAt(given, 'spec', 'audiences').map(String)
  const expirationSeconds = Number(valueAt(given, 'spec', 'expirationSeconds') ?? 3600)
  const bound = objectAt(given, 'spec', 'boundObjectRef')
  const { token, expires } = api.tokens.bind({
    account,
    audiences,
    expirationSeconds,
    ...boundTo(api, call, bound),
  })
  const { name, namespace, uid } = account.metadata
  const answered: JsonObject = {
    kind: tokenRequest.kind,
    apiVersion: apiVersionOf(tokenRequest),
    metadata: { name, namespace: namespace ?? '', uid, creationTimestamp: timestamp(now()) },
    spec: {
      audiences: audiences.length > 0 ? audiences : ['https://kubernetes.default.svc'],
      expirationSeconds,
      boundObjectRef: Object.keys(bound).length > 0 ? bound : null,
    },
    status: { token, expirationTimestamp: timestamp(expires) },
  }
  sendObject(call, tokenRequest, answered, format, { status: 201 })
}

/**
 * Pod and node a token is to live with. Throws a StatusError: 404 for a pod that is not there, 409
 * for another of its name.
 */
function boundTo(
  api: Api,
  { info }: ResourceCall,
  bound: JsonObject,
): { pod?: { name: string; uid: string }; node?: { name: string; uid: string } } {
  if (optionalTextAt(bound, 'kind') !== 'Pod') return {}
  const { catalog } = api.registry
  const pod = api.registry.get(catalog.get(pods), info.namespace, textAt(bound, 'name'))
  const { name, uid } = pod.metadata
  const requested = optionalTextAt(bound, 'uid')
  if (requested && requested !== uid) {
    const cause = `the UID in the bound object reference (${requested}) does not match the UID in record. The object might have been deleted and then recreated`
    throw new StatusError(conflict({ ...pods, name }, cause))
  }
  const nodeName = optionalTextAt(pod, 'spec', 'nodeName')
  const node = nodeName ? api.registry.find(catalog.get(nodes), undefined, nodeName) : undefined
  return {
    pod: { name, uid },
    ...(node && { node: { name: node.metadata.name, uid: node.metadata.uid } }),
  }
}

function log(api: Api, call: ResourceCall): void {
  const { kind, info, writer } = call
  const { namespace, name } = api.registry.get(kind, info.namespace, nameOf(call)).metadata
  const text = tail(api.logs.read(namespace ?? '', name), info.query.get('tailLines'))
  if (!isTrue(info.query.get('follow'))) {
    sendBody(call, { contentType: 'text/plain', bytes: Buffer.from(text) })
    return
  }
  sendStreamHead(call, 'text/plain')
  if (text !== '') writer.write(Buffer.from(text))
  const following = api.logs.follow(namespace ?? '', name, (more) =>
    writer.write(Buffer.from(more)),
  )
  writer.onClose(() => following[Symbol.dispose]())
}

function tail(text: string, lines: string | null): string {
  if (lines === null || !/^[0-9]+$/.test(lines)) return text
  const all = text.split(/(?<=\n)/)
  return all.slice(Math.max(0, all.length - Number(lines))).join('')
}

/** The refusal of a stream request without an upgrade. */
function onlyUpgraded(): never {
  throw new StatusError(badRequest('Upgrade request required'))
}
