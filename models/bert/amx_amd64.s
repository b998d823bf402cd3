#include "textflag.h"
#include "funcdata.h"

// The instructions of AMX, which Go's assembler lacks. Tiles 0 to 3 hold sums, 4 and 5 rows
// of activations, 6 and 7 columns of weights.
#define LDTILECFG_AX      BYTE $0xc4; BYTE $0xe2; BYTE $0x78; BYTE $0x49; BYTE $0x00
#define TILERELEASE       BYTE $0xc4; BYTE $0xe2; BYTE $0x78; BYTE $0x49; BYTE $0xc0
#define TILEZERO_0        BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $0xc0
#define TILEZERO_1        BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $0xc8
#define TILEZERO_2        BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $0xd0
#define TILEZERO_3        BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $0xd8
// From (AX)(BX*1), (R8)(BX*1), (DX)(CX*1) and 64(DX)(CX*1).
#define TILELOADD_AX_4    BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x4b; BYTE $0x24; BYTE $0x18
#define TILELOADD_R8_5    BYTE $0xc4; BYTE $0xc2; BYTE $0x7b; BYTE $0x4b; BYTE $0x2c; BYTE $0x18
#define TILELOADD_DX_6    BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x4b; BYTE $0x34; BYTE $0x0a
#define TILELOADD_64DX_7  BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x4b; BYTE $0x7c; BYTE $0x0a; BYTE $0x40
// To (SI)(CX*1), 64(SI)(CX*1), (R9)(CX*1) and 64(R9)(CX*1).
#define TILESTORED_0_SI   BYTE $0xc4; BYTE $0xe2; BYTE $0x7a; BYTE $0x4b; BYTE $0x04; BYTE $0x0e
#define TILESTORED_1_64SI BYTE $0xc4; BYTE $0xe2; BYTE $0x7a; BYTE $0x4b; BYTE $0x4c; BYTE $0x0e; BYTE $0x40
#define TILESTORED_2_R9   BYTE $0xc4; BYTE $0xc2; BYTE $0x7a; BYTE $0x4b; BYTE $0x14; BYTE $0x09
#define TILESTORED_3_64R9 BYTE $0xc4; BYTE $0xc2; BYTE $0x7a; BYTE $0x4b; BYTE $0x5c; BYTE $0x09; BYTE $0x40
// The last tile += unsigned bytes of the first * signed bytes of the second.
#define TDPBUSD_4_6_0     BYTE $0xc4; BYTE $0xe2; BYTE $0x49; BYTE $0x5e; BYTE $0xc4
#define TDPBUSD_4_7_1     BYTE $0xc4; BYTE $0xe2; BYTE $0x41; BYTE $0x5e; BYTE $0xcc
#define TDPBUSD_5_6_2     BYTE $0xc4; BYTE $0xe2; BYTE $0x49; BYTE $0x5e; BYTE $0xd5
#define TDPBUSD_5_7_3     BYTE $0xc4; BYTE $0xe2; BYTE $0x41; BYTE $0x5e; BYTE $0xdd

// func product8AMX(p *product8)
//
// The tiles are configured and released here: Go does not preempt assembly, and the
// operating system keeps them for a signal handler.
TEXT ·product8AMX(SB), 0, $4288-8
	NO_LOCAL_POINTERS
	MOVQ p+0(FP), R13
	MOVQ 88(R13), R14 // rows

	// A tile of activations has DI bytes of a row: 64, or less if the depth is no multiple.
	MOVQ  $64, DI
	MOVQ  40(R13), AX
	TESTQ $63, AX
	JEQ   configure
	MOVQ  $32, DI
	TESTQ $31, AX
	JEQ   configure
	MOVQ  $16, DI

configure:
	// Palette 1; bytes of a row from byte 16, rows from byte 48.
	MOVQ      $16, R11 // rows of a tile
	CMPQ      R14, R11
	CMOVQLT   R14, R11
	LEAQ      config-64(SP), AX
	VPXORQ    Z0, Z0, Z0
	VMOVDQU64 Z0, (AX)
	MOVB      $1, (AX)
	MOVQ      $0x0040004000400040, BX
	MOVQ      BX, 16(AX)
	IMUL3Q    $0x10001, DI, BX
	MOVQ      $0x0040004000000000, DX
	ADDQ      DX, BX
	MOVQ      BX, 24(AX)
	MOVQ      $0x010101010101, DX
	IMULQ     R11, DX
	MOVQ      DI, BX
	SHRQ      $2, BX
	IMUL3Q    $0x0101, BX, BX
	SHLQ      $48, BX
	ADDQ      DX, BX
	MOVQ      BX, 48(AX)
	LDTILECFG_AX

	MOVQ 8(R13), BX // bytes between rows
	MOVQ $128, CX   // bytes between rows of weights and of sums
	LEAQ sums-4288(SP), SI
	ADDQ $63, SI
	ANDQ $-64, SI
	LEAQ 2048(SI), R9
	MOVQ 104(R13), R12 // panels
	MOVQ 32(R13), AX
	MOVQ AX, weights-8(SP)
	XORQ R15, R15      // bytes of the panel's constants from the first

panel:
	MOVQ    48(R13), AX
	MOVQ    56(R13), R8
	MOVQ    64(R13), R10
	VMOVUPS (AX)(R15*1), Z0
	VMOVUPS 64(AX)(R15*1), Z1
	VMOVUPS (R8)(R15*1), Z2
	VMOVUPS 64(R8)(R15*1), Z3
	VMOVUPS (R10)(R15*1), Z4
	VMOVUPS 64(R10)(R15*1), Z5
	MOVQ    88(R13), R14 // rows that are left

block:
	// Two tiles of rows if more than one is left. The last tiles overlap the ones before,
	// so that all have the same number of rows.
	MOVQ 88(R13), R11
	MOVQ weights-8(SP), DX
	MOVQ 40(R13), R10
	CMPQ R14, $16
	JLE  single
	CMPQ R11, $32
	JLT  single

	SUBQ    R14, R11    // the first row
	MOVQ    88(R13), AX
	SUBQ    $32, AX
	CMPQ    R11, AX
	CMOVQGT AX, R11
	MOVQ    BX, AX
	IMULQ   R11, AX
	ADDQ    (R13), AX
	MOVQ    BX, R8
	SHLQ    $4, R8
	ADDQ    AX, R8
	TILEZERO_0
	TILEZERO_1
	TILEZERO_2
	TILEZERO_3

double_depth:
	TILELOADD_AX_4
	TILELOADD_DX_6
	TILELOADD_64DX_7
	TDPBUSD_4_6_0
	TILELOADD_R8_5
	TDPBUSD_4_7_1
	TDPBUSD_5_6_2
	TDPBUSD_5_7_3
	ADDQ DI, AX
	ADDQ DI, R8
	MOVQ DI, R14
	SHLQ $5, R14
	ADDQ R14, DX
	SUBQ DI, R10
	JNE  double_depth
	TILESTORED_0_SI
	TILESTORED_1_64SI
	TILESTORED_2_R9
	TILESTORED_3_64R9
	MOVQ $32, R10
	JMP  scale

single:
	MOVQ    R11, AX
	SUBQ    R14, R11
	SUBQ    $16, AX
	MOVQ    $0, R14
	CMOVQLT R14, AX
	CMPQ    R11, AX
	CMOVQGT AX, R11
	MOVQ    BX, AX
	IMULQ   R11, AX
	ADDQ    (R13), AX
	TILEZERO_0
	TILEZERO_1

single_depth:
	TILELOADD_AX_4
	TILELOADD_DX_6
	TDPBUSD_4_6_0
	TILELOADD_64DX_7
	TDPBUSD_4_7_1
	ADDQ DI, AX
	MOVQ DI, R14
	SHLQ $5, R14
	ADDQ R14, DX
	SUBQ DI, R10
	JNE  single_depth
	TILESTORED_0_SI
	TILESTORED_1_64SI
	MOVQ    $16, R10
	MOVQ    88(R13), AX
	CMPQ    AX, R10
	CMOVQLT AX, R10

scale:
	// R10 rows of sums from row R11.
	MOVQ  80(R13), R14
	MOVQ  R14, DX
	IMULQ R11, DX
	ADDQ  72(R13), DX
	ADDQ  R15, DX
	MOVQ  16(R13), AX
	MOVQ  24(R13), R8
	LEAQ  (AX)(R11*4), AX
	LEAQ  (R8)(R11*4), R8
	ADDQ  R10, R11
	MOVQ  SI, R9

row:
	VBROADCASTSS (R8), Z8
	VBROADCASTSS (AX), Z10
	VMOVAPS      Z8, Z9
	VFMADD213PS  Z4, Z2, Z8
	VFMADD213PS  Z5, Z3, Z9
	VCVTDQ2PS    (R9), Z11
	VCVTDQ2PS    64(R9), Z12
	VMULPS       Z0, Z11, Z11
	VMULPS       Z1, Z12, Z12
	VFMADD213PS  Z8, Z10, Z11
	VFMADD213PS  Z9, Z10, Z12
	VMOVUPS      Z11, (DX)
	VMOVUPS      Z12, 64(DX)
	ADDQ         $4, AX
	ADDQ         $4, R8
	ADDQ         $128, R9
	ADDQ         R14, DX
	DECQ         R10
	JNE          row

	LEAQ 2048(SI), R9
	MOVQ 88(R13), R14
	SUBQ R11, R14
	JGT  block

	MOVQ 40(R13), AX
	SHLQ $5, AX
	ADDQ AX, weights-8(SP)
	ADDQ $128, R15
	DECQ R12
	JNE  panel

	TILERELEASE
	VZEROUPPER
	RET
