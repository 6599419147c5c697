import t from 'tap'
import { endToEnd, HeaderList } from '../../../src/http/exchange/headers.ts'

void t.test('fields named by any Connection header are removed', async (t) => {
  const headers = new HeaderList([
    'connection',
    'X-One,  x-TWO',
    'x-one',
    '1',
    'Connection',
    'close,X-Three,',
    'X-Two',
    '2',
    'X-THREE',
    '3',
    'X-Four',
    '4',
  ])
  t.strictSame(endToEnd(headers).raw, ['X-Four', '4'])
})

void t.test('Authorization is passed on, though Connection names it', async (t) => {
  const headers = new HeaderList(['Connection', 'AUTHORIZATION', 'Authorization', 'Bearer a'])
  t.strictSame(endToEnd(headers).raw, ['Authorization', 'Bearer a'])
})
