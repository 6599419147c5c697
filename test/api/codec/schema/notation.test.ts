import t from 'tap'
import { readMessage, type MessageSchema } from '../../../../src/api/codec/schema/notation.ts'

const inner: MessageSchema = { name: 'Inner', fields: {} }

const read = (text: string): MessageSchema => readMessage('Outer', text, () => inner)

/** Without the functions that find messages. */
const fieldOf = (text: string) => {
  const { message: _, ...field } = Object.values(read(text).fields)[0] ?? {}
  return field
}

void t.test('each mark of a field has one meaning', async (t) => {
  t.strictSame(fieldOf('a string 1'), { number: 1, type: 'string', always: true })
  t.strictSame(fieldOf('a! int32 2'), { number: 2, type: 'int32', always: true, shown: true })
  t.strictSame(fieldOf('a *bool 3'), { number: 3, type: 'bool' })
  t.strictSame(fieldOf('a! *time 4'), { number: 4, type: 'time', shown: true })
  t.strictSame(fieldOf('a []int64 5'), { number: 5, type: 'int64', repeated: true })
  t.strictSame(fieldOf('a map[string]bytes 16'), { number: 16, type: 'bytes', map: true })
  t.strictSame(fieldOf('...a! Inner 7'), {
    number: 7,
    type: 'message',
    always: true,
    shown: true,
    inline: true,
  })
})

void t.test('fields keep their order, on however many lines they stand', async (t) => {
  const { name, fields } = read('b string 2, a []core.v1.Inner 1,\n      c *Inner 3')
  t.equal(name, 'Outer')
  t.strictSame(Object.keys(fields), ['b', 'a', 'c'])
})

void t.test('the message of a field is looked up once, when it is first needed', async (t) => {
  const looked: string[] = []
  const { fields } = readMessage('Outer', 'a *meta.v1.Inner 1, b string 2', (type) => {
    looked.push(type)
    return inner
  })
  t.strictSame(looked, [])
  t.equal(fields['a']?.message?.(), inner)
  t.equal(fields['a']?.message?.(), inner)
  t.strictSame(looked, ['meta.v1.Inner'])
  t.equal(fields['b']?.message, undefined)
})

void t.test('a message that is a list wraps its items', async (t) => {
  t.strictSame(read('[]string 1'), {
    name: 'Outer',
    fields: { items: { number: 1, type: 'string', repeated: true } },
    wraps: true,
  })
  t.equal(read('items []string 1').wraps, undefined)
})
