import t from 'tap'
import { inOwnFolder } from '../../../src/hub/wiring/own-folder.ts'

void t.test('a folder that is denied is named with what refused it and what helps', async (t) => {
  const denied = Object.assign(new Error('EACCES: permission denied'), {
    code: 'EACCES',
    syscall: 'mkdir',
    path: '/var/lib/hub',
  })
  const deny = (): never => {
    throw denied
  }
  t.throws(() => inOwnFolder('--root-dir', '/var/lib/hub', deny), {
    code: 'UNUSABLE_FOLDER',
    message:
      '--root-dir=/var/lib/hub cannot be used: mkdir /var/lib/hub (EACCES): permission denied: run the hub as the user that owns it, or change its owner',
  })
})

void t.test('a programming error passes unchanged', async (t) => {
  const mistake = new TypeError('x is not a function')
  const fail = (): never => {
    throw mistake
  }
  t.throws(() => inOwnFolder('--root-dir', '/var/lib/hub', fail), mistake)
})
