import type { GVK } from '../api/kube/gvk.ts'
import type { JsonObject } from '../api/kube/json.ts'
import { printed } from '../api/kube/json-at.ts'
import { notFound, methodNotAllowed, resourceNotFound, StatusError } from '../api/kube/status.ts'
import { sendBody, sendObject, sendText } from './answer.ts'
import type { Api, Call } from './call.ts'
import {
  aggregatedDiscovery,
  coreVersions,
  documentHash,
  groupDocument,
  groupList,
  prefersAggregated,
  resourceList,
} from './discovery.ts'
import { goJson } from '../api/codec/json/write.ts'
import { negotiate, plainJson } from './negotiation.ts'
import { openApiV2, openApiV3, openApiV3Index } from './openapi.ts'
import { hasProtobuf } from './render.ts'
import { issuer } from './tokens.ts'

/** Answers non-resource paths: health, version, discovery, schemas, keys. */
export function answerPath(api: Api, call: Call): void {
  const { seen } = call
  const path = seen.path.replace(/(.)\/$/, '$1')
  if (!call.info.isResource && call.info.ambiguous === true)
    throw new StatusError(resourceNotFound())
  const document = documents[path]
  if (seen.method !== 'GET' && seen.method !== 'HEAD') {
    if (call.info.isResource || /^\/apis?\//.test(path)) throw new StatusError(methodNotAllowed())
    sendText(call, 404, '404 page not found\n')
  } else if (document) document(api, call)
  else if (checks.has(path)) sendText(call, 200, 'ok')
  else if (!discover(api, call, path) && !sendSchema(api, call, path)) {
    sendText(call, 404, '404 page not found\n')
  }
}

const checks = new Set(['/healthz', '/livez', '/readyz'])

const version: JsonObject = {
  major: '1',
  minor: '35',
  gitVersion: 'v1.35.6',
  gitCommit: 'sandbox',
  gitTreeState: 'clean',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: 'go1.26.8',
  compiler: 'gc',
  platform: 'linux/amd64',
}

const sendJson = (call: Call, text: string, contentType = 'application/json'): void =>
  sendBody(call, { contentType, bytes: Buffer.from(text) })

const documents: Record<string, (api: Api, call: Call) => void> = {
  '/openapi/v2': (_api, call) => sendJson(call, goJson(openApiV2)),
  '/version': (_api, call) => sendJson(call, goJson(version, 2)),
  '/openid/v1/jwks': (api, call) =>
    sendJson(call, goJson(api.tokens.keySet), 'application/jwk-set+json'),
  '/.well-known/openid-configuration': (_api, call) => {
    const host = String(call.seen.headers['host'] ?? 'localhost')
    const configuration = {
      issuer,
      jwks_uri: `https://${host}/openid/v1/jwks`,
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['ES256'],
    }
    sendJson(call, goJson(configuration))
  },
}

/** False where the path is not of discovery. */
function discover(api: Api, call: Call, path: string): boolean {
  const { headers } = call.seen
  const [, prefix, ...rest] = path.split('/')
  if (prefix !== 'api' && prefix !== 'apis') return false
  const [group, version, ...deeper] = prefix === 'api' && rest.length > 0 ? ['', ...rest] : rest
  if (deeper.length > 0) return false
  const { catalog } = api.registry
  if (group !== undefined) {
    const document =
      version === undefined ? groupDocument(catalog, group) : resourceList(catalog, group, version)
    if (document) sendDiscovery(call, document)
    return document !== undefined
  }
  if (!prefersAggregated(headers['accept'] as string | undefined)) {
    const address = String(headers['host'] ?? '')
    sendDiscovery(call, prefix === 'api' ? coreVersions(address) : groupList(catalog))
    return true
  }
  const bytes = Buffer.from(`${goJson(aggregatedDiscovery(catalog, prefix === 'api'))}\n`)
  sendBody(call, {
    contentType: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
    bytes,
    headers: { 'Cache-Control': 'public', Etag: `"${documentHash(bytes)}"`, Vary: 'Accept' },
  })
  return true
}

function sendDiscovery(call: Call, document: JsonObject): void {
  const gvk: GVK = { group: '', version: 'v1', kind: printed(document['kind']) }
  const offer = { protobuf: hasProtobuf(gvk), conversions: false }
  sendObject(call, gvk, document, negotiate(call.seen, offer))
}

/** False where the path is not of schemas. Throws a StatusError 404 for an unknown group. */
function sendSchema(api: Api, call: Call, path: string): boolean {
  const { catalog } = api.registry
  const [, prefix, which, ...rest] = path.split('/')
  if (prefix !== 'openapi' || which !== 'v3') return false
  const isIndex = rest.length === 0
  const document = isIndex ? openApiV3Index(catalog) : openApiV3(catalog, rest.join('/'))
  if (!document) throw new StatusError(notFound({ group: '', resource: 'openapi', name: path }))
  const requested = call.seen.query.get('hash')
  const hash = documentHash(goJson(document))
  if (requested !== null && requested !== hash) {
    const headers = { Location: `${path}?hash=${hash}` }
    sendBody(call, { status: 301, contentType: 'text/html', bytes: Buffer.alloc(0), headers })
    return true
  }
  const text = plainJson(call.seen).pretty ? goJson(document, 2) : goJson(document)
  // The index has no type in Go, whose server guesses one.
  if (isIndex)
    sendBody(call, { contentType: 'text/plain; charset=utf-8', bytes: Buffer.from(text) })
  else sendJson(call, text)
  return true
}
