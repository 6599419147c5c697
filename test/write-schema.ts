/**
 * `node test/write-schema.ts` writes src/api/codec/schema/messages.json from kubernetes.proto and
 * go-types.txt beside it. `node test/write-schema.ts VERSION API APIMACHINERY` brings those two up
 * to date first, from folders that hold k8s.io/api and k8s.io/apimachinery of that version.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { goTypesText } from './api/codec/schema/go-types.ts'
import { files, messagesSource, neededNames } from './api/codec/schema/messages.ts'
import { onlyNeeded, readProto, splitName } from './api/codec/schema/proto.ts'

function bringUpToDate(version: string, api: string, apimachinery: string): void {
  const scopes = [...new Set(neededNames.map((name) => splitName(name).scope))]
  const read = (scope: string, file: string): string => {
    const path = scope.replace('.', '/')
    const folders = scope === 'meta.v1' ? [apimachinery, 'pkg/apis', path] : [api, path]
    return readFileSync(join(...folders, file), 'utf8')
  }
  const needed = onlyNeeded(
    neededNames,
    scopes.map((scope) => read(scope, 'generated.proto')),
  )
  const sources = new Map(scopes.map((scope) => [scope, read(scope, 'types.go')]))
  const head = `// Messages of Kubernetes ${version}: generated.proto of k8s.io/api and k8s.io/apimachinery
// (Apache-2.0), without comments and what the hub does not need.
`
  writeFileSync(files.proto, `${head}\n${needed}`)
  writeFileSync(files.goTypes, goTypesText(readProto(needed), sources))
}

const [version, api, apimachinery] = process.argv.slice(2)
if (version !== undefined) {
  if (api === undefined || apimachinery === undefined)
    throw new Error('VERSION goes with the folders API and APIMACHINERY')
  bringUpToDate(version, api, apimachinery)
}
writeFileSync(files.messages, messagesSource())
