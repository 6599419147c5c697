import t from 'tap'
import {
  notFound,
  serviceUnavailable,
  tooLargeResourceVersion,
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
