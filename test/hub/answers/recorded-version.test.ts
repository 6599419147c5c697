import t from 'tap'
import { recordedMinor } from '../../../src/hub/answers/recorded-version.ts'
import type { DocumentKey, StoredDocument } from '../../../src/hub/store/store.ts'

const minorOf = (text: string | undefined): number | undefined =>
  recordedMinor({
    document: ({ identity, path, representation }: DocumentKey) =>
      text === undefined ||
      `${identity} ${path} ${representation}` !== 'node /version application/json'
        ? undefined
        : ({ body: Buffer.from(text) } as unknown as StoredDocument),
  })

void t.test('the minor version is read from /version, with or without a plus', async (t) => {
  t.equal(minorOf('{"major":"1","minor":"36"}'), 36)
  t.equal(minorOf('{"major":"1","minor":"33+"}'), 33)
})

void t.test('a version other than Kubernetes 1 is unknown', async (t) => {
  for (const text of [
    undefined,
    '',
    '[]',
    '{"major":"2","minor":"1"}',
    '{"major":"1","minor":"x"}',
  ])
    t.equal(minorOf(text), undefined, `${text}`)
})
