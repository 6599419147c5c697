import t from 'tap'
import type { RawResponse } from './client.ts'
import type { Sender } from './message.ts'
import { watchEvents, withoutInstances, type Normalizer } from './normalize.ts'

const sender: Sender = { host: '', agent: '', namespace: 'own' }

const answer = (body: string): RawResponse => ({
  line: 'HTTP/1.1 200 OK',
  status: 200,
  fields: ['Content-Type', 'application/json'],
  body,
  trailers: [],
  interim: [],
})

/** A part of the fields of an object, as an API server writes it: with what Go escapes. */
const managed = (manager: string, second: number): string =>
  `{"manager":"${manager}","operation":"Update","time":"2026-01-01T00:00:0${second}Z",` +
  `"fieldsV1":{"f:data":{"k:{\\"a\\":\\"[\\u003c],{\\"}":{}}}}`

const object = (...managers: readonly string[]): string =>
  `{"kind":"ConfigMap","metadata":{"name":"a","managedFields":[${managers.join(',')}]},"data":{"b":"]"}}`

const pod = managed('kubelet', 1)
const controller = managed('controller', 2)

const bodies: Readonly<Record<string, [Normalizer, (...managers: readonly string[]) => string]>> = {
  'an object': [withoutInstances, object],
  'a list': [
    withoutInstances,
    (...of) => `{"items":[${object()},${object(...of)},${object(...of)}]}`,
  ],
  'a watch': [
    watchEvents,
    (...of) =>
      `{"type":"ADDED","object":${object(...of)}}\n{"type":"MODIFIED","object":${object(pod)}}\n`,
  ],
}

for (const [name, [normalize, body]] of Object.entries(bodies)) {
  void t.test(`managed fields of ${name} have no order`, async (t) => {
    const normalized = (...managers: readonly string[]) =>
      normalize(answer(body(...managers)), sender)
    const both = normalized(pod, controller)
    t.strictSame(normalized(controller, pod), both)
    t.notSame(normalized(controller), both, 'but each is there')
    t.notSame(normalized(pod, managed('other', 2)), both, 'by its manager')
    t.notSame(normalized(pod, controller, controller), both, 'once')
  })
}

void t.test('what breaks off within managed fields stays as it is', async (t) => {
  const whole = object(controller, pod)
  const cut = whole.slice(0, whole.lastIndexOf(']},"'))
  t.match(withoutInstances(answer(cut), sender)?.body, /"controller".*"AGENT"/)
})
