// SPDX-License-Identifier: Apache-2.0
// Uses only the C interface: the C++ interface of Open MPI and MPICH has been removed from the standard.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include "mpi/messages.hpp"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/little_endian.hpp"

namespace msprobe::mpi {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 28;  // MPI counts in int
constexpr std::size_t kLength = 8;                    // of a message, in front of its first piece

}  // namespace

Messages::Messages() {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  if (provided < MPI_THREAD_SERIALIZED)
    throw Error(
        "this MPI does not support calls from several threads, one at a time (MPI_THREAD_SERIALIZED)");
  int number = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &number);
  process_ = static_cast<std::size_t>(number);
  MPI_Comm_size(MPI_COMM_WORLD, &number);
  processes_ = static_cast<std::size_t>(number);
  std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
  MPI_Get_processor_name(name.data(), &number);
  host_.assign(name.data(), static_cast<std::size_t>(number));
}

long long Messages::same_for_all(long long number) const {
  MPI_Bcast(&number, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
  return number;
}

void Messages::send_piece(std::size_t to, int tag, std::string_view bytes) {
  MPI_Request request{};
  {
    const std::lock_guard lock(calls_);
    MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, static_cast<int>(to), tag,
              MPI_COMM_WORLD, &request);
  }
  for (Patience patience;; patience.wait()) {
    const std::lock_guard lock(calls_);
    int done = 0;
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return;
  }
}

void Messages::send(std::size_t to, int tag, std::string_view bytes) {
  const std::lock_guard lock(sending_);
  std::string first;
  append_le(first, static_cast<std::uint64_t>(bytes.size()));
  const std::size_t beside = std::min(bytes.size(), kPiece);
  first += bytes.substr(0, beside);
  send_piece(to, tag, first);
  for (bytes.remove_prefix(beside); !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kPiece)))
    send_piece(to, tag, bytes.substr(0, kPiece));
}

std::optional<Messages::Message> Messages::look(int tag) {
  const std::lock_guard lock(calls_);
  int there = 0;
  MPI_Status status{};
  MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &there, &status);
  if (there == 0) return std::nullopt;
  int count = 0;
  MPI_Get_count(&status, MPI_BYTE, &count);
  std::string piece(static_cast<std::size_t>(count), '\0');
  MPI_Recv(piece.data(), count, MPI_BYTE, status.MPI_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  const auto place = partial_.try_emplace({status.MPI_SOURCE, tag}).first;
  Partial& partial = place->second;
  if (partial.size == 0) {
    if (piece.size() < kLength) throw FormatError("a message of another process has no length");
    partial.size = kLength + load_le<std::uint64_t>(reinterpret_cast<const std::byte*>(piece.data()));
  }
  if (partial.bytes.empty()) {
    partial.bytes = std::move(piece);
  } else {
    partial.bytes += piece;
  }
  if (partial.bytes.size() < partial.size) return std::nullopt;
  Message message{static_cast<std::size_t>(status.MPI_SOURCE), partial.bytes.substr(kLength)};
  partial_.erase(place);
  return message;
}

Messages::Message Messages::receive(int tag) {
  for (Patience patience;; patience.wait()) {
    if (std::optional<Message> message = look(tag)) return *std::move(message);
  }
}

void Messages::finish() {
  const std::lock_guard lock(calls_);
  MPI_Finalize();
}

void Messages::give_up(int status) {
  const std::lock_guard lock(calls_);
  MPI_Abort(MPI_COMM_WORLD, status);
  ::_exit(status);
}

void Patience::wait() {
  check_interrupt();
  ::usleep(microseconds_);
  microseconds_ = std::min(2 * microseconds_, kLongest);
}

}  // namespace msprobe::mpi
