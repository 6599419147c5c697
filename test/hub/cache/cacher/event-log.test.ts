import t from 'tap'
import { isObjectEvent } from '../../../../src/api/codec/watch.ts'
import { EventLog } from '../../../../src/hub/cache/cacher/event-log.ts'

void t.test('an event does not hold on to the chunk that it came in', async (t) => {
  const chunk = Buffer.alloc(64 * 1024, 'x')
  const named = { namespace: 'default', name: 'a', uid: 'uid', resourceVersion: '11' }
  const log = new EventLog('10')
  log.append(
    [
      {
        type: 'MODIFIED',
        object: { ...named, bytes: chunk.subarray(10, 110) },
        frame: chunk.subarray(0, 120),
      },
    ],
    [{ ...named, resourceVersion: '9', bytes: chunk.subarray(200, 300) }],
  )
  const group = log.at(0)
  if (typeof group !== 'object') throw new Error('it is not there')
  const { frame, object, previous } = group.events.find(isObjectEvent) ?? {}
  t.not(frame?.buffer, chunk.buffer)
  t.strictSame(Buffer.from(object?.bytes ?? []), Buffer.alloc(100, 'x'))
  t.equal(object?.bytes.buffer, frame?.buffer, 'and its bytes are there once')
  t.equal(previous?.bytes.buffer.byteLength, 100, 'nor its previous state to what it was read with')
})
