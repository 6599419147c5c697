import t from 'tap'
import {
  alreadyExists,
  badRequest,
  conflict,
  expired,
  forbidden,
  internalError,
  invalid,
  methodNotAllowed,
  notAcceptable,
  notFound,
  onlyAcceptable,
  requestEntityTooLarge,
  resourceNotFound,
  serviceUnavailable,
  StatusError,
  timeout,
  tooLargeResourceVersion,
  tooManyRequests,
  unauthorized,
  unsupportedMediaType,
} from '../../../src/api/kube/status.ts'
import { fixture as fixtureBytes } from '../../kit/fixture.ts'

const fixture = (name: string): unknown => JSON.parse(fixtureBytes(`${name}.json`).toString())

void t.test('notFound() is the API server’s Status', async (t) => {
  const real = fixture('error-404-object') as { details: { kind: string; name: string } }
  const { kind: resource, name } = real.details
  t.strictSame(JSON.parse(JSON.stringify(notFound({ group: '', resource, name }))), real)
})

void t.test('tooLargeResourceVersion() is the API server’s Status', async (t) => {
  const real = fixture('error-504-too-large-version') as { message: string }
  const [, asked = '', current = ''] = /version: (\d+), current: (\d+)/.exec(real.message) ?? []
  t.strictSame(JSON.parse(JSON.stringify(tooLargeResourceVersion(asked, current))), real)
})

void t.test('each reason has its code', async (t) => {
  const what = { group: 'apps', resource: 'deployments', name: 'd' }
  const table = [
    [badRequest('m'), 400, 'BadRequest'],
    [unauthorized(), 401, 'Unauthorized'],
    [forbidden('m'), 403, 'Forbidden'],
    [notFound(what), 404, 'NotFound'],
    [resourceNotFound(), 404, 'NotFound'],
    [methodNotAllowed(), 405, 'MethodNotAllowed'],
    [notAcceptable(['a']), 406, 'NotAcceptable'],
    [onlyAcceptable(['a']), 406, 'NotAcceptable'],
    [alreadyExists(what), 409, 'AlreadyExists'],
    [conflict(what, 'm'), 409, 'Conflict'],
    [expired('m'), 410, 'Expired'],
    [requestEntityTooLarge('m'), 413, 'RequestEntityTooLarge'],
    [unsupportedMediaType('m'), 415, 'UnsupportedMediaType'],
    [invalid('m', {}), 422, 'Invalid'],
    [tooManyRequests('m', 1), 429, 'TooManyRequests'],
    [internalError('m'), 500, 'InternalError'],
    [serviceUnavailable('m'), 503, 'ServiceUnavailable'],
    [timeout('m'), 504, 'Timeout'],
  ] as const
  for (const [status, code, reason] of table) {
    t.match(status, { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason })
  }
})

void t.test('an object of a group is named with its group', async (t) => {
  const what = { group: 'apps', resource: 'deployments', name: 'd' }
  t.equal(notFound(what).message, 'deployments.apps "d" not found')
  t.strictSame(notFound(what).details, { name: 'd', group: 'apps', kind: 'deployments' })
})

void t.test('a 503 has retryAfterSeconds only if given', async (t) => {
  t.equal('details' in serviceUnavailable('m'), false)
  t.strictSame(serviceUnavailable('m', 2).details, { retryAfterSeconds: 2 })
})

void t.test('fields are written in the order the API server writes them', async (t) => {
  t.strictSame(Object.keys(notFound({ group: '', resource: 'pods', name: 'p' })), [
    'kind',
    'apiVersion',
    'metadata',
    'status',
    'message',
    'reason',
    'details',
    'code',
  ])
})

void t.test('a status can be thrown with its cause', async (t) => {
  const cause = new Error('disk')
  const error = new StatusError(expired('too old'), { cause })
  t.equal(error.message, 'too old')
  t.equal(error.cause, cause)
  t.equal(error.status.code, 410)
})
