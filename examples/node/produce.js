// A gRPC producer in another language. From Tidemark it only needs the files in proto/.
//
//     npm ci && npm start          (start the services first: tidemark serve)
//
// It appends a batch, then many batches over one stream, then a rejected batch, to show an error.

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const PROTO = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "proto");
const ADDRESS = process.env.TIDEMARK_WRITER_ADDRESS ?? "127.0.0.1:8081";
const TOPIC = "from-node";
const BATCHES = 100;

const definition = await loader.load("tidemark/v1/commit_log.proto", {
  includeDirs: [PROTO],
  longs: String, // offsets are 64 bits; a JavaScript number is exact up to 2^53
  enums: String,
  defaults: true,
});
const { CommitLogService } = grpc.loadPackageDefinition(definition).tidemark.v1;
const writer = new CommitLogService(ADDRESS, grpc.credentials.createInsecure());

const appendBatch = (request) =>
  new Promise((resolve, reject) =>
    writer.appendBatch(request, { deadline: Date.now() + 10_000 }, (error, answer) => (error ? reject(error) : resolve(answer))),
  );

const batch = (number, id) => ({
  topic: TOPIC,
  requestId: `${process.pid}-${Date.now()}-${id}`, // a repeat with the same id and content is stored once
  messages: { messages: [{ body: Buffer.from(`message ${number}`), tag: "node", keys: [`n${number}`] }] },
});

// One batch, one answer.
const request = batch(0, "first");
const first = await appendBatch(request);
console.log(`stored: queue ${first.queueId}, offset ${first.queueOffset}, ${first.status}`);

// Send the same request again, as after a lost answer. The writer recognises it and does not store it twice.
const again = await appendBatch(request);
assert.deepEqual([again.duplicate, again.queueOffset], [true, first.queueOffset]);
console.log("repeated: answered with the first offset, stored once");

// Send many batches on one stream. Each answer contains its batch's correlation id.
const answered = await new Promise((resolve, reject) => {
  const offsets = new Map();
  const stream = writer.appendStream({ deadline: Date.now() + 30_000 });
  stream.on("data", ({ results }) => {
    for (const { correlationId, appended, error } of results) {
      if (!appended) return reject(new Error(error.message));
      offsets.set(correlationId, appended.queueOffset);
    }
    if (offsets.size === BATCHES) stream.end();
  });
  stream.on("end", () => resolve(offsets));
  stream.on("error", reject);
  for (let number = 1; number <= BATCHES; number++) {
    stream.write({ batches: [{ correlationId: number, batch: batch(number, number) }] });
  }
});
assert.equal(answered.size, BATCHES);
console.log(`streamed: ${answered.size} batches acknowledged`);

// An error has a gRPC code, and a google.rpc.ErrorInfo with a stable reason.
const refusal = await appendBatch({ ...batch(0, "bad"), topic: "no spaces please" }).catch((error) => error);
assert.equal(refusal.code, grpc.status.INVALID_ARGUMENT);
console.log(`rejected: ${grpc.status[refusal.code]}, ${refusal.details}`);

writer.close();
