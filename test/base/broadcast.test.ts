import t from 'tap'
import { Broadcast } from '../../src/base/broadcast.ts'

void t.test('listeners are called in the order in which they were added', async (t) => {
  const heard: string[] = []
  const broadcast = new Broadcast<[string, number]>()
  broadcast.listen((word, count) => heard.push(`first ${word} ${count}`))
  broadcast.listen((word) => heard.push(`second ${word}`))
  broadcast.announce('a', 1)
  t.strictSame(heard, ['first a 1', 'second a'])
})

void t.test('a listener that was given twice is called twice, and each ends alone', async (t) => {
  let heard = 0
  const listener = (): void => void heard++
  const broadcast = new Broadcast()
  const one = broadcast.listen(listener)
  broadcast.listen(listener)
  broadcast.announce()
  t.equal(heard, 2)
  one[Symbol.dispose]()
  broadcast.announce()
  t.equal(heard, 3)
})

void t.test('a listener that ends while it is called is called no more', async (t) => {
  let heard = 0
  const broadcast = new Broadcast()
  const once = broadcast.listen(() => {
    heard++
    once[Symbol.dispose]()
  })
  broadcast.announce()
  broadcast.announce()
  t.equal(heard, 1)
})
