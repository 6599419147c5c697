import { readFileSync } from 'node:fs'
import t from 'tap'
import { files, messagesSource } from './messages.ts'

void t.test("messages.json matches Kubernetes' generated.proto and Go types", async (t) => {
  t.equal(
    readFileSync(files.messages, 'utf8'),
    messagesSource(),
    'node test/write-schema.ts mends it',
  )
})
