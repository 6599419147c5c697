import t from 'tap'
import { OpenList } from '../../src/base/open-list.ts'

const letters = (...names: string[]): { readonly name: string }[] => names.map((name) => ({ name }))

void t.test('what is under way is listed in the order in which it began', async (t) => {
  const [a, b, c, d] = letters('a', 'b', 'c', 'd') as [object, object, object, object]
  const open = new OpenList<object>()
  for (const each of [a, b, c]) open.add(each)
  t.equal(open.delete(b), true)
  open.add(d)
  t.strictSame([...open], [a, c, d])
  t.equal(open.size, 3)
  t.equal(open.delete(b), false, 'it is gone')
  t.equal(open.size, 3)
})

void t.test('one that ends while the others are gone through is removed', async (t) => {
  const open = new OpenList<object>()
  for (const each of letters('a', 'b', 'c')) open.add(each)
  for (const each of open) open.delete(each)
  t.equal(open.size, 0)
  t.strictSame([...open], [])
})

void t.test('the latest that fits is found', async (t) => {
  const open = new OpenList<{ readonly name: string }>()
  const [first, second, third] = letters('a', 'b', 'a')
  for (const each of [first, second, third]) if (each) open.add(each)
  t.equal(
    open.findLast(({ name }) => name === 'a'),
    third,
  )
  t.equal(
    open.findLast(({ name }) => name === 'c'),
    undefined,
  )
})
