import t from 'tap'
import { asBuffer, joined, lengthOf } from '../../src/base/bytes.ts'

void t.test('parts are joined in order', async (t) => {
  t.equal(joined([Buffer.from('a'), new Uint8Array([98]), Buffer.from('')]).toString(), 'ab')
  t.equal(joined([]).length, 0)
})

void t.test('a single part is not copied, and shows its own bytes only', async (t) => {
  const whole = new Uint8Array([1, 2, 3, 4])
  const part = whole.subarray(1, 3)
  const same = joined([part])
  t.strictSame([...same], [2, 3])
  whole[1] = 9
  t.equal(same[0], 9)
  t.equal(asBuffer(same), same)
})

void t.test('length is of bytes, over all parts', async (t) => {
  t.equal(lengthOf([Buffer.from('é'), Buffer.from('ab')]), 4)
  t.equal(lengthOf([]), 0)
})
