/** Bytes or values that do not fit the schema. */
export class ProtobufError extends Error {
  readonly code: 'ERR_PROTOBUF'
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ProtobufError'
    this.code = 'ERR_PROTOBUF'
  }
}
