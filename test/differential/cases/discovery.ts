import { accepting, get, type RequestCase } from '../request-case.ts'

const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'

/** What an API server serves, and in which words it says so. */
export const discovery: readonly RequestCase[] = [
  ...['/', '/api', '/api/v1', '/apis', '/apis/apps', '/apis/apps/v1', '/version'].flatMap((path) =>
    accepting(
      path,
      'application/json',
      'application/vnd.kubernetes.protobuf,application/json',
      'application/yaml',
      '*/*',
    ),
  ),
  ...['/api', '/apis'].flatMap((path) =>
    accepting(
      path,
      aggregated,
      `${aggregated},application/json`,
      'application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json',
      'application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
      'application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList',
    ),
  ),
  get('/api/'),
  get('/apis/'),
  get('/version/'),
  get('/apis/example.com/v1'),
  get('/apis/nothing.example/v1'),
  get('/apis/apps/v9'),
  get('/api/v2'),
  get('/healthz'),
  get('/livez?verbose'),
  get('/readyz'),
  get('/readyz/ping'),
  get('/livez/nothing'),
  get('/healthz', { 'User-Agent': 'kube-probe/1.35' }),
  get('/.well-known/openid-configuration'),
  get('/openid/v1/jwks'),
  get('/nowhere'),
  get('/metrics/nothing'),
  get('/openapi/v2'),
  get('/openapi/v2', { Accept: 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf' }),
  get('/openapi/v2', { 'Accept-Encoding': 'gzip' }),
  get('/openapi/v3'),
  get('/openapi/v3/api/v1'),
  get('/openapi/v3/apis/example.com/v1'),
  get('/openapi/v3/apis/nothing'),
]

/** Documents that are asked for again by their tag. */
export const documentsWithTags: readonly string[] = [
  '/openapi/v2',
  '/openapi/v3',
  '/openapi/v3/api/v1',
]
