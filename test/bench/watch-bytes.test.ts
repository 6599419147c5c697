import t from 'tap'
import { Frames } from '../../bench/load/frames.ts'
import { readList } from '../../bench/load/list-body.ts'
import { findStamp, stampAnnotation, stampText } from '../../bench/load/stamp.ts'
import { everySplit } from '../kit/fixture.ts'

const framesOf = (mediaType: string, parts: readonly Buffer[]): string[] => {
  const frames: string[] = []
  const cutter = new Frames(mediaType, (frame) => frames.push(frame.toString()))
  for (const part of parts) cutter.push(part)
  return frames
}

void t.test('a frame is emitted once complete, in JSON and protobuf', async (t) => {
  const messages = ['first', '', 'third'].map((text) => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(text.length)
    return Buffer.concat([length, Buffer.from(text)])
  })
  for (const parts of everySplit(Buffer.from('{"a":1}\n{"b":2}\n{"cut')))
    if (framesOf('application/json', parts).join('') !== '{"a":1}\n{"b":2}\n')
      t.fail(`JSON cut at ${parts[0]?.length}`)
  const begun = Buffer.concat([...messages, Buffer.from([0, 0, 0, 9, 1])])
  for (const parts of everySplit(begun)) {
    const frames = framesOf('application/vnd.kubernetes.protobuf;stream=watch', parts)
    if (!(frames.length === 3 && frames[2] === messages[2]?.toString()))
      t.fail(`protobuf cut at ${parts[0]?.length}`)
  }
  t.pass('at every place')
})

void t.test('a stamp is found in an event, and not its name in the managed fields', async (t) => {
  const stamp = { sequence: 42, sentAt: 123_456_789_012n }
  const fields = `"f:annotations":{"f:${stampAnnotation}":{}}`
  const event = `{${fields},"annotations":{"${stampAnnotation}":"${stampText(stamp)}"}}\n`
  t.strictSame(findStamp(Buffer.from(event)), stamp)
  t.equal(findStamp(Buffer.from(`{${fields}}\n`)), undefined)
})

void t.test('the items of a list are counted, JSON and protobuf', async (t) => {
  const text = JSON.stringify({ metadata: { resourceVersion: '77' }, items: [{}, {}] })
  t.strictSame(readList('application/json', Buffer.from(text)), { items: 2, resourceVersion: '77' })

  const field = (number: number, content: Buffer): Buffer =>
    Buffer.concat([Buffer.from([number * 8 + 2, content.length]), content])
  const meta = field(1, field(2, Buffer.from('77')))
  const list = Buffer.concat([meta, field(2, Buffer.from('pod')), field(2, Buffer.from('pod'))])
  const body = Buffer.concat([Buffer.from('k8s\0'), field(1, Buffer.from('type')), field(2, list)])
  const protobuf = 'application/vnd.kubernetes.protobuf'
  t.strictSame(readList(protobuf, body), { items: 2, resourceVersion: '77' })
  t.throws(() => readList(protobuf, body.subarray(0, -2)), /cut/)
  t.throws(() => readList(protobuf, Buffer.from(text)), /not an object/)
})
