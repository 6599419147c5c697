import type { GVK } from '../api/kube/gvk.ts'
import type { JsonObject } from '../api/kube/json.ts'
import { notFound, methodNotAllowed, resourceNotFound, StatusError } from '../api/kube/status.ts'
import { sendBody, sendText } from './answer.ts'
import { askingOf, type Api, type Call } from './call.ts'
import { aggregatedVersion, Discovery, discoveryTag } from './discovery.ts'
import { jsonText, prettyText } from './encoding.ts'
import { contentTypeOf, negotiate, plainJson } from './negotiation.ts'
import { printed } from './object.ts'
import { openApiV2, openApiV3, openApiV3Index } from './openapi.ts'
import { encode, hasProtobuf } from './render.ts'
import { issuer } from './tokens.ts'

/** Answers what is no resource: health, version, discovery, schemas, keys. */
export function answerPath(api: Api, call: Call): void {
  const { outlet, seen } = call
  const path = seen.path.replace(/(.)\/$/, '$1')
  if (!call.info.isResource && call.info.ambiguous === true)
    throw new StatusError(resourceNotFound())
  const document = documents[path]
  if (seen.method !== 'GET' && seen.method !== 'HEAD') {
    if (call.info.isResource || /^\/apis?\//.test(path)) throw new StatusError(methodNotAllowed())
    sendText(outlet, seen, 404, '404 page not found\n')
  } else if (document) document(api, call)
  else if (checks[path]) sendHealth(call, path.slice(1))
  else if (!discover(api, call, path) && !sendSchema(api, call, path)) {
    sendText(outlet, seen, 404, '404 page not found\n')
  }
}

const checks: Record<string, true> = { '/healthz': true, '/livez': true, '/readyz': true }

function sendHealth(call: Call, check: string): void {
  const { outlet, seen } = call
  if (!seen.query.has('verbose')) {
    sendBody(outlet, seen, {
      status: 200,
      contentType: 'text/plain; charset=utf-8',
      bytes: Buffer.from('ok'),
      headers: { 'X-Content-Type-Options': 'nosniff' },
    })
    return
  }
  const parts = check === 'readyz' ? [...healthParts, 'shutdown'] : healthParts
  const lines = parts.map((part) => `[+]${part} ok`)
  sendText(outlet, seen, 200, `${[...lines, `${check} check passed`].join('\n')}\n`)
}

const healthParts = ['ping', 'log', 'informer-sync', 'poststarthook/crd-informer-synced']

const version: JsonObject = {
  major: '1',
  minor: '35',
  emulationMajor: '1',
  emulationMinor: '35',
  minCompatibilityMajor: '1',
  minCompatibilityMinor: '34',
  gitVersion: 'v1.35.6',
  gitCommit: 'sandbox',
  gitTreeState: 'clean',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: 'go1.26.8',
  compiler: 'gc',
  platform: 'linux/amd64',
}

const documents: Record<string, (api: Api, call: Call) => void> = {
  '/version': (_api, call) =>
    sendBody(call.outlet, call.seen, {
      status: 200,
      contentType: 'application/json',
      bytes: Buffer.from(prettyText(version)),
    }),
  '/openid/v1/jwks': (api, call) =>
    sendBody(call.outlet, call.seen, {
      status: 200,
      contentType: 'application/jwk-set+json',
      bytes: Buffer.from(jsonText(api.tokens.keySet)),
    }),
  '/.well-known/openid-configuration': (_api, call) =>
    sendBody(call.outlet, call.seen, {
      status: 200,
      contentType: 'application/json',
      bytes: Buffer.from(
        jsonText({
          issuer,
          jwks_uri: `https://${String(call.seen.headers['host'] ?? 'localhost')}/openid/v1/jwks`,
          response_types_supported: ['id_token'],
          subject_types_supported: ['public'],
          id_token_signing_alg_values_supported: ['ES256'],
        }),
      ),
    }),
  '/': (api, call) => {
    const paths = ['/api', '/api/v1', '/apis', '/healthz', '/livez', '/openapi/v2', '/openapi/v3']
    const groups = new Discovery(api.registry.catalog).groups()['groups'] as { name: string }[]
    const all = [...paths, ...groups.map(({ name }) => `/apis/${name}`), '/readyz', '/version']
    sendBody(call.outlet, call.seen, {
      status: 200,
      contentType: 'application/json',
      bytes: Buffer.from(prettyText({ paths: all.toSorted() })),
    })
  },
}

/** False where the path is not of discovery. */
function discover(api: Api, call: Call, path: string): boolean {
  const { seen, outlet } = call
  const [, prefix, ...rest] = path.split('/')
  const [group = '', groupVersion] = prefix === 'api' ? ['', ...rest] : rest
  const depth = prefix === 'api' ? rest.length + 1 : rest.length
  if ((prefix !== 'api' && prefix !== 'apis') || depth > 2) return false
  const discovery = new Discovery(api.registry.catalog)
  const aggregated = aggregatedVersion(seen.headers['accept'] as string | undefined)
  if (rest.length === 0) {
    if (aggregated !== undefined) {
      const bytes = Buffer.from(`${jsonText(discovery.aggregated(prefix === 'api', aggregated))}\n`)
      sendBody(outlet, seen, {
        status: 200,
        contentType: `application/json;g=apidiscovery.k8s.io;v=${aggregated};as=APIGroupDiscoveryList`,
        bytes,
        headers: { 'Cache-Control': 'public', Etag: discoveryTag(bytes), Vary: 'Accept' },
      })
      return true
    }
    const address = String(seen.headers['host'] ?? '')
    sendDiscovery(call, prefix === 'api' ? discovery.core(address) : discovery.groups())
    return true
  }
  const found =
    groupVersion === undefined ? discovery.group(group) : discovery.resources(group, groupVersion)
  if (found) sendDiscovery(call, found)
  return found !== undefined
}

function sendDiscovery({ seen, outlet }: Call, document: JsonObject): void {
  const gvk: GVK = { group: '', version: 'v1', kind: printed(document['kind']) }
  const representation = negotiate(askingOf(seen), {
    protobuf: hasProtobuf(gvk),
    conversions: false,
    custom: false,
  })
  sendBody(outlet, seen, {
    status: 200,
    contentType: contentTypeOf(representation),
    bytes: encode(gvk, document, representation),
  })
}

/** False where the path is not of schemas. Throws a StatusError 404 for a group nobody serves. */
function sendSchema(api: Api, { seen, outlet }: Call, path: string): boolean {
  const { catalog } = api.registry
  const [, prefix, which, ...rest] = path.split('/')
  if (prefix !== 'openapi' || (which !== 'v2' && which !== 'v3')) return false
  const document =
    which === 'v2'
      ? openApiV2(catalog)
      : rest.length === 0
        ? openApiV3Index(catalog)
        : openApiV3(catalog, rest.join('/'))
  if (!document) throw new StatusError(notFound({ group: '', resource: 'openapi', name: path }))
  const { pretty } = plainJson(askingOf(seen))
  sendBody(outlet, seen, {
    status: 200,
    contentType: 'application/json',
    bytes: Buffer.from(pretty ? prettyText(document) : jsonText(document)),
  })
  return true
}
