import t from 'tap'
import { inRootDir } from '../../../src/hub/wiring/root-dir.ts'

void t.test('a folder that is denied is named with what refused it and what helps', async (t) => {
  const denied = Object.assign(new Error('EACCES: permission denied'), {
    code: 'EACCES',
    syscall: 'mkdir',
    path: '/var/lib/hub',
  })
  const deny = (): never => {
    throw denied
  }
  t.throws(() => inRootDir('/var/lib/hub', deny), {
    code: 'UNUSABLE_ROOT_DIR',
    message:
      '--root-dir=/var/lib/hub cannot be used: mkdir /var/lib/hub (EACCES): permission denied: run the hub as the user that owns it, or change its owner',
  })
})

void t.test('a programming error passes unchanged', async (t) => {
  const mistake = new TypeError('x is not a function')
  const fail = (): never => {
    throw mistake
  }
  t.throws(() => inRootDir('/var/lib/hub', fail), mistake)
})
