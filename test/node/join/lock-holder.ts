/** Locks the node at this root until its standard input ends. */
import { NodeFiles } from '../../../src/node/join/node-files.ts'
import { lockNode } from '../../../src/node/join/node-lock.ts'

const [root = ''] = process.argv.slice(2)
using _held = await lockNode(new NodeFiles(root))
process.stdout.write('held\n')
await process.stdin.resume().toArray()
