import { join } from 'node:path'
import t from 'tap'
import { inOwnNetwork } from '../../kit/own-network.ts'

inOwnNetwork(t, join(import.meta.dirname, 'dummy-unit', 'in-own-network.ts'))
